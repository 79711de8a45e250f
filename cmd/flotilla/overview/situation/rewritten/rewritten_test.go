package rewritten_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/rewritten"
	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestText: what was taken although it does not follow is told once, of the first of all.
func TestText(t *testing.T) {
	const next = "if nobody meant it, see who pushed; to have such held back: flotilla annotate gitrepository a -n shop gitops.flotilla.io/rollback-protection=hold"
	back, aside, unknown := lineage.Behind.Text("main@sha1:1"), lineage.Aside.Text("main@sha1:2"), lineage.Unknown.Text("main@sha1:3")
	for name, tc := range map[string]struct {
		said []string // of the sources a, b, …
		want []string // of which it is, what, and what next
	}{
		"no history is known to be another": {[]string{"", unknown, lineage.Beside.Text("v1")}, nil},
		"one was moved back":                {[]string{back}, []string{"GitRepository shop/a", "the history was moved back, and does not contain main@sha1:1: that was taken", next}},
		"two were rewritten": {[]string{aside, "", back}, []string{
			"GitRepository shop/a", "the history was rewritten, and does not contain main@sha1:2: that was taken; the same of 1 more: GitRepository shop/c", next,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var sources rewritten.Sources
			for i, said := range tc.said {
				sources.Add(inventory.Source{Kind: "GitRepository", ObjectKey: client.ObjectKey{Namespace: "shop", Name: string(rune('a' + i))}}, said)
			}
			var got []string
			if of, message, next, some := sources.Text(); some {
				got = []string{of.GroupKind.Kind + " " + of.Namespace + "/" + of.Name, message, next}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("it says (-want +got):\n%s", diff)
			}
		})
	}
}
