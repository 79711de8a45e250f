package codec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const deployment = `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"shop","resourceVersion":"7","generation":2,` +
	`"labels":{"app":"web","karmada.io/managed":"true"},"annotations":{"a":"<\u003c&>"}},"spec":{"replicas":3,"ratio":0.5,` +
	`"template":{"spec":{"containers":[{"name":"c","image":"i","args":["a b",""]}]}}},"status":{"observedGeneration":2,"replicas":null}}`

// unasked is a decoder that records whether it was called.
type unasked struct {
	runtime.Decoder
	asked *bool
}

func (u unasked) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	*u.asked = true
	return u.Decoder.Decode(data, defaults, into)
}

// ordinary returns the dynamic client's own decoders of objects and of events.
func ordinary() (of runtime.NegotiatedSerializer, objects runtime.Decoder, events runtime.Serializer) {
	of = dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
	info, _ := runtime.SerializerInfoForMediaType(of.SupportedMediaTypes(), runtime.ContentTypeJSON)
	return of, of.DecoderToVersion(info.Serializer, nil), info.StreamSerializer.Serializer
}

// TestReadObjects checks that the result, errors included, equals that of the ordinary decoder.
func TestReadObjects(t *testing.T) {
	of, other, _ := ordinary()
	made, err := newCodecs(of)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data    string
		quickly bool
	}{
		"an object":                      {deployment, true},
		"one of no group":                {strings.Replace(deployment, "apps/v1", "v1", 1), true},
		"one with spaces":                {" " + strings.ReplaceAll(deployment, ",", ",\n "), true},
		"a list":                         {`{"kind":"DeploymentList","apiVersion":"apps/v1","items":[` + deployment + `]}`, true},
		"an error":                       {`{"kind":"Status","apiVersion":"v1","status":"Failure","code":410}`, false},
		"one of no kind":                 {strings.Replace(deployment, `"kind":"Deployment",`, "", 1), false},
		"one of no version":              {strings.Replace(deployment, `"apiVersion":"apps/v1",`, "", 1), false},
		"one of a version that is none":  {strings.Replace(deployment, "apps/v1", "a/b/c", 1), false},
		"one whose kind is a number":     {strings.Replace(deployment, `"Deployment"`, "7", 1), false},
		"one that says two kinds":        {strings.Replace(deployment, `"kind":`, `"kind":"Other","kind":`, 1), true},
		"one that says another in haste": {strings.Replace(deployment, `"kind":`, `"KIND":"Status","kind":`, 1), false},
		"one that is cut off":            {deployment[:len(deployment)-9], false},
		"one with more behind it":        {deployment + "{}", false},
		"nothing":                        {"", false},
		"no object":                      {"null", false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, into := range []func() runtime.Object{
				func() runtime.Object { return nil },
				func() runtime.Object { return &unstructured.Unstructured{Object: map[string]any{"old": true}} },
				func() runtime.Object { return &metav1.Status{} },
			} {
				want, wantKind, wantErr := other.Decode([]byte(c.data), nil, into())
				asked := false
				got, kind, err := objects{unasked{other, &asked}, made.known}.Decode([]byte(c.data), nil, into())
				if diff := cmp.Diff([]any{want, wantKind, text(wantErr)}, []any{got, kind, text(err)}); diff != "" {
					t.Errorf("read (-ordinary +got):\n%s", diff)
				}
				if into() == nil && asked == c.quickly {
					t.Errorf("the ordinary decoder was asked: %t", asked)
				}
			}
		})
	}
}

// TestReadEvents checks that the result, errors included, equals that of the ordinary decoder.
func TestReadEvents(t *testing.T) {
	of, _, other := ordinary()
	made, err := newCodecs(of)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := runtime.SerializerInfoForMediaType(made.SupportedMediaTypes(), runtime.ContentTypeJSON)
	kind := info.StreamSerializer.Serializer.(events).kind
	for name, c := range map[string]struct {
		data    string
		quickly bool
	}{
		"an event":                        {`{"type":"ADDED","object":` + deployment + `}`, true},
		"a bookmark":                      {`{"type":"BOOKMARK","object":{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"resourceVersion":"9"}}}`, true},
		"an event with more in it":        {`{"type":"ADDED","object":{},"more":{}}`, false},
		"one that says two objects":       {`{"type":"ADDED","object":{"a":1},"object":{"b":2}}`, false},
		"one in another order":            {`{"object":` + deployment + `,"type":"ADDED"}`, false},
		"one with spaces":                 {`{ "type": "ADDED", "object": ` + deployment + ` }`, false},
		"one of no object":                {`{"type":"ADDED","object":null}`, false},
		"one whose type is escaped":       {`{"type":"\u0041DDED","object":{}}`, false},
		"one of no type":                  {`{"type":"","object":{}}`, false},
		"one that is cut off":             {`{"type":"ADDED","object":` + deployment, false},
		"one with an object that is none": {`{"type":"ADDED","object":{"a":}}`, false},
		"one that names another kind":     {`{"type":"ADDED","object":{},"kind":"Status","apiVersion":"v1"}`, false},
		"nothing":                         {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			var want, got metav1.WatchEvent
			_, wantKind, wantErr := other.Decode([]byte(c.data), nil, &want)
			asked := false
			reader := events{struct {
				runtime.Decoder
				runtime.Encoder
			}{unasked{other, &asked}, other}, kind}
			_, gotKind, err := reader.Decode([]byte(c.data), nil, &got)
			if diff := cmp.Diff([]any{want, wantKind, text(wantErr)}, []any{got, gotKind, text(err)}); diff != "" {
				t.Errorf("read (-ordinary +got):\n%s", diff)
			}
			if asked == c.quickly {
				t.Errorf("the ordinary decoder was asked: %t", asked)
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

// FuzzRead reads anything, as an object, as an event, and as the object of one, by both decoders.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{deployment, `{"type":"ADDED","object":` + deployment + `}`, `{"kind":"Status","apiVersion":"v1"}`, `{"type":"ERROR","object":{},"object":[]}`, "null", ""} {
		f.Add([]byte(seed))
	}
	of, other, otherEvents := ordinary()
	made, err := newCodecs(of)
	if err != nil {
		f.Fatal(err)
	}
	info, _ := runtime.SerializerInfoForMediaType(made.SupportedMediaTypes(), runtime.ContentTypeJSON)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, []byte(`{"type":"ADDED","object":` + string(data) + `}`)} {
			for _, into := range []runtime.Object{nil, &unstructured.Unstructured{}} {
				want, wantKind, wantErr := other.Decode(data, nil, copied(into))
				got, kind, err := made.DecoderToVersion(info.Serializer, nil).Decode(data, nil, copied(into))
				if diff := cmp.Diff([]any{want, wantKind, text(wantErr)}, []any{got, kind, text(err)}); diff != "" {
					t.Fatalf("object (-ordinary +got):\n%s", diff)
				}
			}
			var want, got metav1.WatchEvent
			_, wantKind, wantErr := otherEvents.Decode(data, nil, &want)
			_, kind, err := info.StreamSerializer.Serializer.Decode(data, nil, &got)
			if diff := cmp.Diff([]any{want, wantKind, text(wantErr)}, []any{got, kind, text(err)}); diff != "" {
				t.Fatalf("event (-ordinary +got):\n%s", diff)
			}
		}
	})
}

func copied(obj runtime.Object) runtime.Object {
	if obj == nil {
		return nil
	}
	return obj.DeepCopyObject()
}

// BenchmarkEvent measures an event and its object.
func BenchmarkEvent(b *testing.B) {
	of, other, otherEvents := ordinary()
	made, err := newCodecs(of)
	if err != nil {
		b.Fatal(err)
	}
	info, _ := runtime.SerializerInfoForMediaType(made.SupportedMediaTypes(), runtime.ContentTypeJSON)
	data := []byte(`{"type":"MODIFIED","object":` + deployment + `}`)
	for name, c := range map[string]struct{ events, objects runtime.Decoder }{
		"ordinary": {otherEvents, other},
		"codec":    {info.StreamSerializer.Serializer, made.DecoderToVersion(info.Serializer, nil)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var event metav1.WatchEvent
				if _, _, err := c.events.Decode(data, nil, &event); err != nil {
					b.Fatal(err)
				}
				if _, _, err := c.objects.Decode(event.Object.Raw, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
