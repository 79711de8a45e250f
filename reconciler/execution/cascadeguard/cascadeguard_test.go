package cascadeguard

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

const space = "karmada-es-eu-1"

// TestWhatLeaves: of the objects in a namespace that a Work deletes, only those of a Work of this hub
// that is being deleted as well do not block the deletion.
func TestWhatLeaves(t *testing.T) {
	work := func(change func(*workv1alpha1.Work)) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: space, Name: "web", Labels: map[string]string{workv1alpha2.WorkPermanentIDLabel: "w-1"}, Finalizers: []string{"f/f"},
		}}
		change(w)
		return w
	}
	leaving := func(w *workv1alpha1.Work) { w.DeletionTimestamp = ptr.To(metav1.Now()) }
	stays := func(*workv1alpha1.Work) {}
	fresh, contested := hubclaim.Standing{Hub: "one"}, hubclaim.Standing{Hub: "one", Contested: true}
	for name, tc := range map[string]struct {
		work     *workv1alpha1.Work // nil: gone
		standing hubclaim.Standing
		hub, id  string // the hub and the Work's ID in the object's metadata
		unmarked bool
		claim    bool   // it is a PersistentVolumeClaim
		space    string // empty: the cluster's
		member   bool   // the cluster leaves
		want     bool
	}{
		"its Work is being deleted":              {work: work(leaving), standing: fresh, hub: "one", id: "w-1", want: true},
		"its Work stays":                         {work: work(stays), standing: fresh, hub: "one", id: "w-1"},
		"its Work stays, and the cluster leaves": {work: work(stays), standing: fresh, hub: "one", id: "w-1", member: true, want: true},
		"its Work leaves it in place": {work: work(func(w *workv1alpha1.Work) {
			leaving(w)
			w.Spec.PreserveResourcesOnDeletion = ptr.To(true)
		}), standing: fresh, hub: "one", id: "w-1"},
		"its Work leaves it in place, and the cluster leaves": {work: work(func(w *workv1alpha1.Work) {
			w.Spec.PreserveResourcesOnDeletion = ptr.To(true)
		}), standing: fresh, hub: "one", id: "w-1", member: true},
		"it has no Work":                                       {standing: fresh, hub: "one", id: "w-1"},
		"it has no Work, and the cluster leaves":               {standing: fresh, hub: "one", id: "w-1", member: true},
		"another hub's, of the same names":                     {work: work(leaving), standing: fresh, hub: "two", id: "w-1"},
		"of another permanent id, applied before hubs said so": {work: work(leaving), standing: fresh, id: "w-2"},
		"it says not whose it is, in a member that was another hub's": {
			work: work(leaving), standing: contested,
		},
		"it has the Work's permanent id, applied before hubs said so": {work: work(leaving), standing: contested, id: "w-1", want: true},
		"a Work of another cluster":                                   {work: work(leaving), standing: fresh, hub: "one", id: "w-1", space: "karmada-es-eu-2"},
		"a claim whose Work goes without it": {work: work(func(w *workv1alpha1.Work) {
			leaving(w)
			w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "b-1"
		}), claim: true, standing: fresh, hub: "one", id: "w-1"},
		"a claim whose Work takes it along": {work: work(func(w *workv1alpha1.Work) {
			leaving(w)
			w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "b-1"
			w.Annotations = map[string]string{workv1alpha2.AllowCascadeAnnotation: "true"}
		}), claim: true, standing: fresh, hub: "one", id: "w-1", want: true},
		"nobody manages it": {work: work(leaving), standing: fresh, hub: "one", id: "w-1", unmarked: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(scheme.New())
			if tc.work != nil {
				if tc.work.DeletionTimestamp != nil {
					tc.work.Finalizers = []string{"f/f"}
				}
				b = b.WithObjects(tc.work)
			}
			g := New(b.Build())
			obj := &metav1.ObjectMeta{
				Namespace: "shop", Name: "web", Labels: map[string]string{workv1alpha2.WorkPermanentIDLabel: tc.id},
				Annotations: map[string]string{workv1alpha2.WorkNamespaceAnnotation: space, workv1alpha2.WorkNameAnnotation: "web"},
			}
			if tc.space != "" {
				obj.Annotations[workv1alpha2.WorkNamespaceAnnotation] = tc.space
			}
			if tc.hub != "" {
				obj.Annotations[workv1alpha2.HubAnnotation] = tc.hub
			}
			if !tc.unmarked {
				obj.Labels[workv1alpha2.ManagedByKarmadaLabel] = workv1alpha2.ManagedByKarmadaLabelValue
			}
			r := &Removal{
				Kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Key: types.NamespacedName{Name: "shop"},
				Work: &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "shop"}}, Standing: tc.standing, Leaving: tc.member,
			}
			kind := schema.GroupKind{Kind: "ConfigMap"}
			if tc.claim {
				kind.Kind = "PersistentVolumeClaim"
			}
			if got := g.leaves(t.Context(), r, kind, obj); got != tc.want {
				t.Errorf("leaves = %t, want %t", got, tc.want)
			}
		})
	}
}
