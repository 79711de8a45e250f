package outlook_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/join/outlook"
)

const space = "karmada-es-west"

func work(name, manifest string, edits ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name, Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b-" + name}}}
	w.Spec.Workload.Manifests = make([]workv1alpha1.Manifest, 1)
	w.Spec.Workload.Manifests[0].Raw = []byte(manifest)
	for _, e := range edits {
		e(w)
	}
	return w
}

const (
	one    = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"one"}}`
	web    = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"one","name":"web"}}`
	data   = `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"namespace":"one","name":"data"}}`
	db     = `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"namespace":"one","name":"db"},"spec":{"volumeClaimTemplates":[{"metadata":{"name":"disk"}}]}}`
	boats  = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"boats.sea.example"}}`
	dataDB = `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"namespace":"one","name":"db"},"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete"},"volumeClaimTemplates":[{"metadata":{"name":"disk"}}]}}`
)

// there is a member with objects of several kinds, some of which are in the
// namespace one.
type there struct {
	objects []metav1.PartialObjectMetadata
	err     error
}

func (m there) Missed(_ context.Context, obj *unstructured.Unstructured, leaves func(schema.GroupKind, metav1.Object) bool) ([]string, error) {
	var out []string
	for i := range m.objects {
		is := &m.objects[i]
		in := is.Kind == "Boat"
		if obj.GetKind() == "Namespace" {
			in = is.Namespace == obj.GetName()
		}
		if in && (obj.GetKind() == "Namespace" || obj.GetKind() == "CustomResourceDefinition") && !leaves(schema.GroupKind{Kind: is.Kind}, is) {
			out = append(out, is.Kind+" "+is.Name)
		}
	}
	return out, m.err
}

func (m there) Claims(_ context.Context, namespace string) ([]corev1.PersistentVolumeClaim, error) {
	var out []corev1.PersistentVolumeClaim
	for _, is := range m.objects {
		if is.Kind == "PersistentVolumeClaim" && is.Namespace == namespace {
			out = append(out, corev1.PersistentVolumeClaim{ObjectMeta: is.ObjectMeta})
		}
	}
	return out, m.err
}

// object returns an object in the namespace one, of the Work of this name; of no
// Work if that is empty.
func object(kind, name, of string) metav1.PartialObjectMetadata {
	out := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: kind}, ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: name}}
	if of != "" {
		out.Labels = map[string]string{workv1alpha2.ManagedByKarmadaLabel: workv1alpha2.ManagedByKarmadaLabelValue}
		out.Annotations = map[string]string{workv1alpha2.WorkNamespaceAnnotation: space, workv1alpha2.WorkNameAnnotation: of}
	}
	return out
}

func TestOf(t *testing.T) {
	cascade := func(w *workv1alpha1.Work) {
		w.Annotations = map[string]string{workv1alpha2.AllowCascadeAnnotation: "true"}
	}
	preserve := func(w *workv1alpha1.Work) { w.Spec.PreserveResourcesOnDeletion = ptr.To(true) }
	away := errors.New("it does not answer")
	for name, tc := range map[string]struct {
		works  []client.Object
		inside outlook.Inside
		reason string // why the cluster is not ready; empty where it is
		want   outlook.Outlook
	}{
		"a namespace with what goes as well": {
			works:  []client.Object{work("one", one), work("web", web)},
			inside: there{objects: []metav1.PartialObjectMetadata{object("Deployment", "web", "web")}},
			want:   outlook.Outlook{Going: []string{"Deployment one/web", "Namespace one"}},
		},
		"a namespace with what others have": {
			works:  []client.Object{work("one", one), work("web", web)},
			inside: there{objects: []metav1.PartialObjectMetadata{object("Deployment", "web", "web"), object("ConfigMap", "theirs", ""), object("ConfigMap", "orphan", "gone")}},
			want:   outlook.Outlook{Going: []string{"Deployment one/web"}, Kept: []string{"Namespace one (in it: ConfigMap theirs and ConfigMap orphan)"}},
		},
		"its Work has all in it go": {
			works:  []client.Object{work("one", one, cascade)},
			inside: there{objects: []metav1.PartialObjectMetadata{object("ConfigMap", "theirs", "")}},
			want:   outlook.Outlook{Going: []string{"Namespace one"}},
		},
		"a namespace with a claim": {
			works:  []client.Object{work("one", one), work("data", data)},
			inside: there{objects: []metav1.PartialObjectMetadata{object("PersistentVolumeClaim", "data", "data")}},
			want:   outlook.Outlook{Kept: []string{"Namespace one (in it: PersistentVolumeClaim data)", "PersistentVolumeClaim one/data, with its data"}},
		},
		"a namespace with a claim, and nobody looks": {
			works: []client.Object{work("one", one), work("data", data)},
			want:  outlook.Outlook{Kept: []string{"Namespace one (in it: PersistentVolumeClaim data)", "PersistentVolumeClaim one/data, with its data"}},
		},
		"a namespace with what its policy preserves, and nobody looks": {
			works: []client.Object{work("one", one), work("web", web, preserve)},
			want:  outlook.Outlook{Kept: []string{"Namespace one (in it: Deployment web)"}, Preserved: 1},
		},
		"a StatefulSet": {
			works: []client.Object{work("one", one), work("db", db)},
			inside: there{objects: []metav1.PartialObjectMetadata{
				object("StatefulSet", "db", "db"), object("PersistentVolumeClaim", "disk-db-0", ""), object("PersistentVolumeClaim", "disk-db-1", ""),
			}},
			want: outlook.Outlook{Going: []string{"StatefulSet one/db"}, Kept: []string{
				"Namespace one (in it: PersistentVolumeClaim disk-db-0 and PersistentVolumeClaim disk-db-1)",
				"PersistentVolumeClaim one/disk-db-0 of StatefulSet db, with its data", "PersistentVolumeClaim one/disk-db-1 of StatefulSet db, with its data",
			}},
		},
		"a StatefulSet, and the member does not answer": {
			works:  []client.Object{work("one", one), work("db", db)},
			inside: there{err: away},
			want: outlook.Outlook{Going: []string{"StatefulSet one/db"}, Unseen: away, Kept: []string{
				"Namespace one (in it: the PersistentVolumeClaims of StatefulSet db)", "the PersistentVolumeClaims of StatefulSet one/db, with their data",
			}},
		},
		"a StatefulSet that has its claims go": {
			works: []client.Object{work("db", dataDB)},
			want:  outlook.Outlook{Going: []string{"StatefulSet one/db"}},
		},
		"a definition of a kind of which there is something": {
			works:  []client.Object{work("boats", boats)},
			inside: there{objects: []metav1.PartialObjectMetadata{object("Boat", "titanic", "")}},
			want:   outlook.Outlook{Kept: []string{"CustomResourceDefinition boats.sea.example (of its kind: Boat titanic)"}},
		},
		"a cluster that cannot be reached": {
			works:  []client.Object{work("one", one), work("data", data)},
			inside: there{err: away}, reason: clusterv1alpha1.ClusterNotReachableReason,
			want: outlook.Outlook{Going: []string{"Namespace one"}, Kept: []string{"PersistentVolumeClaim one/data, with its data"}, Away: "so it is"},
		},
		"a cluster that answers again": {
			works:  []client.Object{work("one", one)},
			inside: there{}, reason: clusterv1alpha1.ClusterAnswersAgainReason,
			want: outlook.Outlook{Going: []string{"Namespace one"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.works...).Build()
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
			cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
			if tc.reason != "" {
				cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: tc.reason, Message: "so it is"}}
			}
			got, err := outlook.Of(t.Context(), hub, cluster, tc.inside)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStays(t *testing.T) {
	is := outlook.Outlook{Kept: []string{"Namespace one (in it: ConfigMap theirs)"}, Preserved: 1}
	if diff := cmp.Diff([]string{"Namespace one (in it: ConfigMap theirs)", "1 object that its policy preserves"}, is.Stays()); diff != "" {
		t.Errorf("one (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"2 objects that their policy preserves"}, outlook.Outlook{Preserved: 2}.Stays()); diff != "" {
		t.Errorf("two (-want +got):\n%s", diff)
	}
}
