package waitlist_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/waitlist"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWhatIsSetLastIsWaitedFor: objects and a source are waited for independently of each other, each as set last.
func TestWhatIsSetLastIsWaitedFor(t *testing.T) {
	web, infra := client.ObjectKey{Namespace: "apps", Name: "web"}, client.ObjectKey{Namespace: "apps", Name: "infra"}
	source := inventory.Source{Kind: "GitRepository", ObjectKey: client.ObjectKey{Namespace: "apps", Name: "fleet"}}
	type has struct{ web, infra, source, noSource bool }
	for name, tc := range map[string]struct {
		set  func(*waitlist.List)
		want has
	}{
		"nothing":        {set: func(*waitlist.List) {}},
		"Kustomizations": {set: func(l *waitlist.List) { l.SetKustomizations([]client.ObjectKey{web, infra}) }, want: has{web: true, infra: true}},
		"others than before": {set: func(l *waitlist.List) {
			l.SetKustomizations([]client.ObjectKey{web})
			l.SetKustomizations([]client.ObjectKey{infra})
		}, want: has{infra: true}},
		"a source, too": {set: func(l *waitlist.List) { l.SetKustomizations([]client.ObjectKey{web}); l.SetSource(source) }, want: has{web: true, source: true}},
		"no object any more": {set: func(l *waitlist.List) {
			l.SetKustomizations([]client.ObjectKey{web})
			l.SetSource(source)
			l.SetObjects(nil)
		}, want: has{source: true}},
		"the source no more": {set: func(l *waitlist.List) { l.SetSource(source); l.SetSource(inventory.Source{}) }},
	} {
		t.Run(name, func(t *testing.T) {
			var l waitlist.List
			tc.set(&l)
			got := has{
				web: l.HasObject(inventory.OfKustomization(web)), infra: l.HasObject(inventory.OfKustomization(infra)),
				source: l.HasSource(source), noSource: l.HasSource(inventory.Source{}),
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(has{})); diff != "" {
				t.Errorf("waited for (-want +got):\n%s", diff)
			}
		})
	}
}
