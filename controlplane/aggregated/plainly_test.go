package aggregated

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// unasked is a decoder that records whether it was called.
type unasked struct {
	runtime.Decoder
	asked *bool
}

func (u unasked) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	*u.asked = true
	return u.Decoder.Decode(data, defaults, into)
}

// TestReadPlainly checks that the result, errors included, equals that of the decoder that
// reads the kind first.
func TestReadPlainly(t *testing.T) {
	work := strings.Replace(storedWork, `{"apiVersion":"work.karmada.io/v1alpha1","kind":"Work",`, `{"kind":"Work","apiVersion":"work.karmada.io/v1alpha1",`, 1)
	other := NewKinds(Options{}).StorageCodec.(lean).Codec
	cases := map[string]struct {
		data  string
		plain bool
	}{
		"a Work, as it is stored":          {work, true},
		"a Work, as a patch makes it":      {storedWork, true},
		"a binding":                        {storedBinding, true},
		"a cluster binding":                {strings.Replace(storedBinding, `"ResourceBinding"`, `"ClusterResourceBinding"`, 1), true},
		"a list of Works":                  {strings.Replace(work, `"Work"`, `"WorkList"`, 1), false},
		"an old version":                   {strings.Replace(storedBinding, `v1alpha2`, `v1alpha1`, 1), false},
		"one that is written by hand":      {"\n" + work, false},
		"one that is cut off":              {work[:len(work)-9], false},
		"one with a field of another type": {strings.Replace(work, `"name":"w"`, `"name":7`, 1), false},
		"one that says two kinds":          {work[:len(work)-1] + `,"kind":"Nothing"}`, false},
		"one of no kind":                   {strings.Replace(work, `"Work"`, `""`, 1), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, into := range []func() runtime.Object{func() runtime.Object { return nil }, func() runtime.Object { return &workv1alpha1.Work{} }} {
				want, wantKind, wantErr := other.Decode([]byte(tc.data), nil, into())
				asked := false
				got, kind, err := newPlainly(unasked{other, &asked}).Decode([]byte(tc.data), nil, into())
				if diff := cmp.Diff([]any{want, wantKind, text(wantErr)}, []any{got, kind, text(err)}); diff != "" {
					t.Errorf("read (-want +got):\n%s", diff)
				}
				if plain := tc.plain && (into() == nil || reflect.TypeOf(got) == reflect.TypeOf(into())) && err == nil; asked == plain {
					t.Errorf("read plainly: %t, want %t", !asked, plain)
				}
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestWhoAsksGetsAnAnswer checks that requests which ask for errors about unknown fields get them:
// they use the ordinary decoder.
func TestWhoAsksGetsAnAnswer(t *testing.T) {
	kinds := NewKinds(Options{})
	for _, info := range kinds.Codecs.SupportedMediaTypes() {
		_, plain := kinds.Codecs.DecoderToVersion(info.Serializer, schema.GroupVersion{}).(plainly)
		_, strict := kinds.Codecs.DecoderToVersion(info.StrictSerializer, schema.GroupVersion{}).(plainly)
		if plain != (info.MediaType == runtime.ContentTypeJSON) || strict {
			t.Errorf("%s: read plainly %t, where fields are asked about %t", info.MediaType, plain, strict)
		}
	}
}

// BenchmarkRead measures the decoding that each write causes in the server's cache.
func BenchmarkRead(b *testing.B) {
	codec := NewKinds(Options{}).StorageCodec.(lean)
	for name, c := range map[string]runtime.Decoder{"plainly": codec, "by its kind": codec.Codec} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := c.Decode([]byte(storedWork), nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
