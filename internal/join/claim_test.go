package join_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/join"
)

// carry sets the claim on a member; empty removes it.
func carry(t *testing.T, member client.Client, claim string) {
	t.Helper()
	patch := `{"metadata":{"annotations":{"` + clusterv1alpha1.ClaimAnnotation + `":` + claim + `}}}`
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	if err := member.Patch(context.WithoutCancel(t.Context()), system, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func carried(t *testing.T, member client.Client) string {
	t.Helper()
	system := &corev1.Namespace{}
	if err := member.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		t.Fatal(err)
	}
	return system.Annotations[clusterv1alpha1.ClaimAnnotation]
}

const (
	noClaim  = "null"
	anothers = `"{\"hub\":\"h2\",\"cluster\":\"east\",\"address\":\"https://two\"}"`
)

func TestClaim(t *testing.T) {
	member := shared.Env(t).Hub
	t.Cleanup(func() { carry(t, member, noClaim) })
	cases := map[string]struct {
		hub      string
		takeOver bool
		before   string
		refused  string // part of the error
		after    string // part of the claim then; empty for none
	}{
		"a member of nobody":           {hub: "h1", before: noClaim, after: `"hub":"h1"`},
		"its own":                      {hub: "h2", before: anothers, after: `"hub":"h2"`},
		"another's":                    {hub: "h1", before: anothers, refused: "at https://two", after: `"hub":"h2"`},
		"another's that it takes over": {hub: "h1", takeOver: true, before: anothers, after: `"hub":"h1"`},
		"by who does not know who it is, nobody's":  {before: noClaim},
		"by who does not know who it is, another's": {before: anothers, refused: "may read its namespace kube-system", after: `"hub":"h2"`},
		"what is no claim":                          {hub: "h1", before: `"{"`, refused: "remove the annotation", after: "{"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			carry(t, member, tc.before)
			o := join.ClaimOptions{Member: member, Hub: tc.hub, Cluster: "self", TakeOver: tc.takeOver}
			for what, err := range map[string]error{"Unclaimed": join.Unclaimed(t.Context(), o), "Claim": join.Claim(t.Context(), o)} {
				if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
					t.Errorf("%s = %v, want %q", what, err, tc.refused)
				}
			}
			if got := carried(t, member); (got == "") != (tc.after == "") || !strings.Contains(got, tc.after) {
				t.Errorf("it carries %s, want %s", got, tc.after)
			}
		})
	}
}

// TestAClaimIsNotWrittenOverAnother checks that a claim that another hub has set
// since the member was read is not overwritten.
func TestAClaimIsNotWrittenOverAnother(t *testing.T) {
	env := shared.Env(t)
	t.Cleanup(func() { carry(t, env.Hub, noClaim) })
	for reads := 1; reads <= 2; reads++ {
		carry(t, env.Hub, noClaim)
		left := reads
		member, err := client.NewWithWatch(env.Config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		late := interceptor.NewClient(member, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, obj, opts...)
				if left--; left == 0 {
					carry(t, env.Hub, anothers)
				}
				return err
			},
		})
		if err := join.Claim(t.Context(), join.ClaimOptions{Member: late, Hub: "h1", Cluster: "self"}); err == nil && left <= 0 {
			t.Errorf("after look %d: claimed", reads)
		} else if err != nil && !errors.Is(err, join.ErrClaimed) && !strings.Contains(err.Error(), "modified") {
			t.Error(err)
		}
		if got := carried(t, env.Hub); left <= 0 && !strings.Contains(got, `"hub":"h2"`) {
			t.Errorf("after look %d it carries %s", reads, got)
		}
	}
}
