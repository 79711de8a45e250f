package overview

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

// TestWorksThatNoBindingMade: that one fails stands nowhere else; a binding reports the
// others.
func TestWorksThatNoBindingMade(t *testing.T) {
	work := func(name string, status metav1.ConditionStatus, labels ...string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: name, Generation: 1, Labels: map[string]string{}}}
		for _, label := range labels {
			w.Labels[label] = "id"
		}
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: status, ObservedGeneration: 1, Message: "denied the request"}}
		return w
	}
	behind := work("behind", metav1.ConditionTrue)
	behind.Generation = 2
	behind.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`)}}}
	goes := work("goes", metav1.ConditionFalse)
	goes.DeletionTimestamp, goes.Finalizers = &metav1.Time{Time: time.Now()}, []string{workv1alpha2.ExecutionControllerFinalizer}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		work("fails", metav1.ConditionFalse), work("fine", metav1.ConditionTrue), behind, goes,
		work("bound", metav1.ConditionFalse, workv1alpha2.ResourceBindingPermanentIDLabel),
		work("wide", metav1.ConditionFalse, workv1alpha2.ClusterResourceBindingPermanentIDLabel),
	).Build()
	want := []situation.Problem{{State: situation.Failed, Kind: "Work", Namespace: "karmada-es-east", Name: "fails", Clusters: []string{"east"}, Message: "denied the request", Next: "flotilla describe work fails -n karmada-es-east"}}
	for _, thorough := range []bool{false, true} {
		found, err := surveyOf(t.Context(), hub, "", thorough, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		var got []situation.Problem
		for _, p := range found.Problems {
			if p.Kind == "Work" {
				got = append(got, p)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("thorough %t (-want +got):\n%s", thorough, diff)
		}
		if behind := len(found.Problems) > len(got); behind != thorough {
			t.Errorf("thorough %t: a version that has yet to arrive is told: %t", thorough, behind)
		}
	}
}

// TestWhatIsBehindOfANamespace: a thorough look at a namespace reports what clusters have yet to take up
// of it, and nothing of others.
func TestWhatIsBehindOfANamespace(t *testing.T) {
	behind := func(namespace string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: namespace, Generation: 2}}
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"` + namespace + `","name":"c"}}`)}}}
		return w
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(behind("shop"), behind("bank"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}).Build()
	for thorough, want := range map[bool][]string{false: nil, true: {"1 object not known to be there in the latest version: ConfigMap shop/c"}} {
		found, err := surveyOf(t.Context(), hub, "shop", thorough, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range found.Problems {
			got = append(got, p.Message)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("thorough %t (-want +got):\n%s", thorough, diff)
		}
	}
}
