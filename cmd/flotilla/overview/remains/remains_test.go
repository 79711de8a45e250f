package remains_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/remains"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const at = "main@sha1:2"

var web = inventory.ID{Namespace: "shop", Name: "web", GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}

func kustomization(name string, owned, leaving, removed []inventory.ID) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	var entries []inventory.Entry
	for _, id := range owned {
		entries = append(entries, inventory.Entry{ID: id, Version: "v1"})
	}
	ks.Status.Inventory, ks.Status.LastAttemptedRevision, ks.Status.LastAppliedRevision = inventory.Record(entries), at, at
	ks.Status.History = meta.History{{Digest: "sha256:0"}}
	inventory.RecordLeaving(&ks.Status, leaving, nil, true)
	inventory.RecordRemoved(&ks.Status, removed, true)
	return ks
}

// refused makes a Kustomization one of which no revision was applied.
func refused(ks *kustomizev1.Kustomization) *kustomizev1.Kustomization {
	ks.Status.LastAppliedRevision = ""
	return ks
}

func suspended(ks *kustomizev1.Kustomization) *kustomizev1.Kustomization {
	ks.Spec.Suspend = true
	return ks
}

func event(name, kind, message string, second int64) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Message: message, LastTimestamp: metav1.NewTime(time.Unix(second, 0)),
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "team", Name: "web"},
	}
}

// of makes an Event one of another Kustomization.
func of(name string, e *corev1.Event) *corev1.Event {
	e.InvolvedObject.Name = name
	return e
}

func work(cluster, name, apiVersion string) *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: name}}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":%q,"kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`, apiVersion)}}}
	return w
}

// hub has objects, and keeps lists of the kinds that are forbidden to those of a namespace.
func hub(forbidden map[string]bool, objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).
		WithIndex(&workv1alpha1.Work{}, "metadata.name", func(obj client.Object) []string { return []string{obj.GetName()} }).
		WithIndex(&corev1.Event{}, "involvedObject.kind", func(obj client.Object) []string { return []string{obj.(*corev1.Event).InvolvedObject.Kind} }).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(opts)
			if kind := fmt.Sprintf("%T", list); forbidden[kind] && o.Namespace == "" || forbidden[kind+" "+o.Namespace] {
				return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("no"))
			}
			return c.List(ctx, list, opts...)
		}}).Build()
}

func TestWhatIsLeft(t *testing.T) {
	own := []inventory.ID{web}
	carried := workv1alpha2.WorkName("Deployment", "web", "shop")
	const removed = "Applied revision: main@sha1:2 (1 created: ConfigMap/shop/new; 2 deleted: ConfigMap/shop/old, Deployment/shop/web)"
	const gone = "Deleted with this Kustomization, at revision main@sha1:1: 2 deleted: Deployment/shop/web, ConfigMap/shop/old"
	for name, tc := range map[string]struct {
		objects   []client.Object
		forbidden map[string]bool
		want      []string
		works     []string
	}{
		"nothing":                              {objects: []client.Object{kustomization("web", nil, nil, nil), event("a", "Kustomization", "Applied revision: main@sha1:2 (1 deleted: Deployment/shop/web2)", 1)}},
		"clusters held it, and no Work has it": {objects: []client.Object{kustomization("web", nil, nil, own)}, want: []string{"It left Kustomization team/web by revision main@sha1:2, or one before."}},
		"clusters may hold it, and Works are not to be read": {objects: []client.Object{kustomization("web", nil, nil, own)}, forbidden: map[string]bool{"*v1alpha1.WorkList": true},
			want: []string{"It left Kustomization team/web by revision main@sha1:2, or one before, and clusters may still hold it: it goes there, too."}},
		"it is to come, and no revision was applied": {objects: []client.Object{refused(kustomization("web", own, nil, nil))},
			want: []string{"Kustomization team/web applies it, and it is not there: somebody else deleted it, or it has yet to be applied. flotilla reconcile kustomization web -n team brings it."}},
		"it was deleted, and its Kustomization is suspended": {objects: []client.Object{suspended(kustomization("web", own, nil, nil))},
			want: []string{"Kustomization team/web applies it, at revision main@sha1:2, and is suspended: it comes back once that goes on, by flotilla resume kustomization web -n team."}},
		"an Event tells, also of what is being deleted": {objects: []client.Object{event("a", "Kustomization", "Applied revision: main@sha1:2; still being deleted: Namespace/red (1 deleted: Deployment/shop/web)", 1)},
			want: []string{"Kustomization team/web removed it with revision main@sha1:2."}},
		"clusters may hold it": {objects: []client.Object{kustomization("web", nil, nil, own), work("west", carried, "apps/v1")}, works: []string{"karmada-es-west"},
			want: []string{"It left Kustomization team/web by revision main@sha1:2, or one before, and clusters may still hold it: it goes there, too."}},
		"it is on its way out": {objects: []client.Object{kustomization("web", own, own, nil)}, want: []string{"It left Kustomization team/web by revision main@sha1:2, or one before."}},
		"somebody else deleted it": {objects: []client.Object{kustomization("web", own, nil, nil)},
			want: []string{"Kustomization team/web applies it, at revision main@sha1:2, and it is not there: somebody else deleted it, or it has yet to be applied. flotilla reconcile kustomization web -n team brings it."}},
		"an Event tells": {objects: []client.Object{event("a", "Kustomization", removed, 1)}, want: []string{"Kustomization team/web removed it with revision main@sha1:2."}},
		"the latest one counts": {objects: []client.Object{
			event("a", "Kustomization", removed, 2), event("b", "Kustomization", "Removed what had left revision main@sha1:1: 4 deleted: Deployment/shop/web, A/b, C/d and 1 more", 1),
		}, want: []string{"Kustomization team/web removed it with revision main@sha1:2."}},
		"what left it was removed later": {objects: []client.Object{event("b", "Kustomization", "Removed what had left revision main@sha1:1: 4 deleted: A/b, C/d, Deployment/shop/web and 1 more", 1)},
			want: []string{"Kustomization team/web removed it with revision main@sha1:1."}},
		"it went with its Kustomization": {objects: []client.Object{event("a", "Kustomization", gone, 1)},
			want: []string{"It was deleted with Kustomization team/web, which had applied revision main@sha1:1."}},
		"which a revision has retired": {objects: []client.Object{
			event("a", "Kustomization", gone, 2), of("apps", event("b", "Kustomization", "Applied revision: main@sha1:2 (1 deleted: Kustomization/team/web)", 1)),
		}, want: []string{"It was deleted with Kustomization team/web, which had applied revision main@sha1:1.", "Kustomization team/apps removed that one with revision main@sha1:2."}},
		"which had applied itself": {objects: []client.Object{event("a", "Kustomization", gone+", Kustomization/team/web", 2)},
			want: []string{"It was deleted with Kustomization team/web, which had applied revision main@sha1:1."}},
		"an Event of something else": {objects: []client.Object{event("a", "Deployment", removed, 1)}},
		"Works carry it": {objects: []client.Object{work("west", carried, "apps/v1"), work("east", carried, "apps/v1"), work("north", "other", "apps/v1")},
			want: []string{"It is not on the control plane any more, and nobody says who removed it."}, works: []string{"karmada-es-east", "karmada-es-west"}},
		"a Work of another group": {objects: []client.Object{work("west", carried, "example.com/v1")}},
		"who may only see another namespace": {objects: []client.Object{event("a", "Kustomization", removed, 1), kustomization("web", own, nil, nil), work("west", carried, "apps/v1")},
			forbidden: map[string]bool{"*v1.KustomizationList": true, "*v1.EventList": true, "*v1.EventList shop": true, "*v1alpha1.WorkList": true}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{}
			obj.SetGroupVersionKind(web.GroupKind.WithVersion("v1"))
			obj.SetNamespace(web.Namespace)
			obj.SetName(web.Name)
			found, err := remains.Of(t.Context(), hub(tc.forbidden, tc.objects...), obj)
			if err != nil {
				t.Fatal(err)
			}
			var works []string
			for _, w := range found.Works {
				works = append(works, w.Namespace)
			}
			if diff := cmp.Diff(tc.want, found.Sentences) + cmp.Diff(tc.works, works); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatBecameOfAKustomization: who looks for one that was renamed, or retired, is led to who has what it had applied.
func TestWhatBecameOfAKustomization(t *testing.T) {
	old := &unstructured.Unstructured{}
	old.SetGroupVersionKind(kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind))
	old.SetNamespace("team")
	old.SetName("web")
	const left, deleted = "Left to others by this Kustomization, which had applied revision main@sha1:1: Kustomization team/shop has Deployment/shop/web, Service/shop/web",
		"Deleted with this Kustomization, at revision main@sha1:1: 1 deleted: ConfigMap/shop/old"
	found, err := remains.Of(t.Context(), hub(nil,
		of("apps", event("a", "Kustomization", "Applied revision: main@sha1:2 (1 created: Kustomization/team/shop; 1 deleted: Kustomization/team/web)", 1)),
		event("b", "Kustomization", left, 3), event("c", "Kustomization", deleted, 2), event("d", "Kustomization", "Applied revision: main@sha1:1", 0),
	), old)
	want := []string{"Kustomization team/apps removed it with revision main@sha1:2.", "Its Event: " + left + ".", "Its Event: " + deleted + "."}
	if diff := cmp.Diff(want, found.Sentences); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// TestRecalled: what a former binding of a template left in a cluster that is away counts for the binding that is there now, if it is to
// stay.
func TestRecalled(t *testing.T) {
	work := func(cluster, value string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: workv1alpha2.WorkName("Deployment", "web", "shop"),
			Annotations: map[string]string{workv1alpha2.WantedAgainAnnotation: value},
		}}
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`)}}}
		return w
	}
	leaving := func(cluster, value string) *workv1alpha1.Work {
		w := work(cluster, value)
		w.DeletionTimestamp, w.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"example.com/held"}
		return w
	}
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}, {Name: "north"}}
	east := work("east", "")
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithIndex(&workv1alpha1.Work{}, "metadata.name", func(obj client.Object) []string { return []string{obj.GetName()} }).
		WithObjects(east, leaving("west", "true"), leaving("north", ""), leaving("south", "true")).Build()
	got, err := remains.Recalled(t.Context(), hub, b, []*workv1alpha1.Work{east})
	if err != nil {
		t.Fatal(err)
	}
	var in []string
	for _, w := range got {
		in = append(in, w.Namespace)
	}
	if diff := cmp.Diff([]string{"karmada-es-east", "karmada-es-west"}, in); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
