package v1alpha1

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// spoke and hub are one binding, in the parts that both versions can say.
func spoke() *ResourceBinding {
	return &ResourceBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "work.karmada.io/v1alpha1", Kind: "ResourceBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: "web-deployment", Namespace: "shop", Labels: map[string]string{"a": "b"}},
		Spec: ResourceBindingSpec{
			Resource: ObjectReference{
				APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", ResourceVersion: "7",
				Replicas:                    3,
				ReplicaResourceRequirements: corev1.ResourceList{"cpu": resource.MustParse("100m")},
			},
			Clusters: []TargetCluster{{Name: "eu-1", Replicas: 2}, {Name: "eu-2", Replicas: 1}},
		},
		Status: ResourceBindingStatus{
			Conditions: []metav1.Condition{{Type: "Scheduled", Status: "True", Reason: "Success"}},
			AggregatedStatus: []AggregatedStatusItem{{
				ClusterName: "eu-1", Applied: true, AppliedMessage: "m", Status: &runtime.RawExtension{Raw: []byte(`{"replicas":2}`)},
			}},
		},
	}
}

func hub() *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "work.karmada.io/v1alpha2", Kind: "ResourceBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: "web-deployment", Namespace: "shop", Labels: map[string]string{"a": "b"}},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{
				APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", ResourceVersion: "7",
			},
			Replicas: 3,
			ReplicaRequirements: &workv1alpha2.ReplicaRequirements{
				ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("100m")},
			},
			Clusters: []workv1alpha2.TargetCluster{{Name: "eu-1", Replicas: 2}, {Name: "eu-2", Replicas: 1}},
		},
		Status: workv1alpha2.ResourceBindingStatus{
			Conditions: []metav1.Condition{{Type: "Scheduled", Status: "True", Reason: "Success"}},
			AggregatedStatus: []workv1alpha2.AggregatedStatusItem{{
				ClusterName: "eu-1", Applied: true, AppliedMessage: "m", Status: &runtime.RawExtension{Raw: []byte(`{"replicas":2}`)},
			}},
		},
	}
}

func TestConversionOfResourceBinding(t *testing.T) {
	if diff := cmp.Diff(hub(), ResourceBindingToV1alpha2(spoke())); diff != "" {
		t.Errorf("to v1alpha2 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(spoke(), ResourceBindingFromV1alpha2(hub())); diff != "" {
		t.Errorf("from v1alpha2 (-want +got):\n%s", diff)
	}
}

func TestConversionOfClusterResourceBinding(t *testing.T) {
	old := &ClusterResourceBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: "work.karmada.io/v1alpha1", Kind: "ClusterResourceBinding"},
		Spec:     spoke().Spec, Status: spoke().Status,
	}
	stored := &workv1alpha2.ClusterResourceBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: "work.karmada.io/v1alpha2", Kind: "ClusterResourceBinding"},
		Spec:     hub().Spec, Status: hub().Status,
	}
	if diff := cmp.Diff(stored, ClusterResourceBindingToV1alpha2(old)); diff != "" {
		t.Errorf("to v1alpha2 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(old, ClusterResourceBindingFromV1alpha2(stored)); diff != "" {
		t.Errorf("from v1alpha2 (-want +got):\n%s", diff)
	}
}

// What v1alpha1 has no words for is dropped on the way to it.
func TestConversionDropsWhatTheOldVersionCannotSay(t *testing.T) {
	rich := hub()
	rich.Spec.Placement = &policyv1alpha1.Placement{}
	rich.Spec.SchedulerName = "default-scheduler"
	rich.Spec.ReplicaRequirements.Namespace = "shop"
	rich.Spec.Clusters[0].Components = []workv1alpha2.TargetComponent{{Name: "job", Replicas: 1}}
	rich.Status.AggregatedStatus[0].Health = workv1alpha2.ResourceHealthy
	rich.Status.SchedulerObservedGeneration = 4
	if diff := cmp.Diff(spoke(), ResourceBindingFromV1alpha2(rich)); diff != "" {
		t.Errorf("from v1alpha2 (-want +got):\n%s", diff)
	}
}

func TestConversionSharesNothing(t *testing.T) {
	in := spoke()
	out := ResourceBindingToV1alpha2(in)
	out.Labels["a"] = "changed"
	out.Status.Conditions[0].Reason = "changed"
	out.Spec.ReplicaRequirements.ResourceRequest["cpu"] = resource.MustParse("1")
	if diff := cmp.Diff(spoke(), in); diff != "" {
		t.Errorf("a change of the result changed the input (-want +got):\n%s", diff)
	}
}

// A scheme converts single bindings and lists of them, both ways.
func TestAddConversions(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{AddToScheme, workv1alpha2.AddToScheme, AddConversions} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	old, stored := *spoke(), *hub()
	wide := ClusterResourceBinding{TypeMeta: typeMeta("work.karmada.io/v1alpha1", "ClusterResourceBinding"), Spec: old.Spec, Status: old.Status}
	wideStored := workv1alpha2.ClusterResourceBinding{
		TypeMeta: typeMeta("work.karmada.io/v1alpha2", "ClusterResourceBinding"), Spec: stored.Spec, Status: stored.Status,
	}
	page := metav1.ListMeta{ResourceVersion: "9", Continue: "more"}
	cases := map[string]struct{ old, stored runtime.Object }{
		"a binding":                    {&old, &stored},
		"a cluster-scoped binding":     {&wide, &wideStored},
		"a list":                       {&ResourceBindingList{ListMeta: page, Items: []ResourceBinding{old}}, &workv1alpha2.ResourceBindingList{ListMeta: page, Items: []workv1alpha2.ResourceBinding{stored}}},
		"an empty list":                {&ResourceBindingList{ListMeta: page}, &workv1alpha2.ResourceBindingList{ListMeta: page}},
		"a list of the cluster-scoped": {&ClusterResourceBindingList{Items: []ClusterResourceBinding{wide}}, &workv1alpha2.ClusterResourceBindingList{Items: []workv1alpha2.ClusterResourceBinding{wideStored}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, way := range []struct{ in, want runtime.Object }{{c.old, c.stored}, {c.stored, c.old}} {
				got := reflect.New(reflect.TypeOf(way.want).Elem()).Interface()
				if err := scheme.Convert(way.in, got, nil); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(way.want, got); diff != "" {
					t.Errorf("%T to %T (-want +got):\n%s", way.in, way.want, diff)
				}
			}
		})
	}
}

// What is converted there and back and there again is what it was the first
// time, and nothing panics on foreign bytes.
func FuzzConversion(f *testing.F) {
	for _, seed := range []any{spoke(), hub(), &ClusterResourceBinding{TypeMeta: metav1.TypeMeta{APIVersion: "work.karmada.io/v1alpha1", Kind: "ClusterResourceBinding"}}} {
		data, err := json.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"spec":{"resource":{"replicas":-1},"clusters":null}}`))
	f.Add([]byte(`{"spec":{"resource":{"resourcePerReplicas":{}}}}`))
	f.Fuzz(func(t *testing.T, object []byte) {
		old, wide := &ResourceBinding{}, &ClusterResourceBinding{}
		if json.Unmarshal(object, old) == nil {
			first := ResourceBindingToV1alpha2(old)
			second := ResourceBindingToV1alpha2(ResourceBindingFromV1alpha2(first))
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("the second round differs from the first (-first +second):\n%s", diff)
			}
		}
		if json.Unmarshal(object, wide) == nil {
			first := ClusterResourceBindingToV1alpha2(wide)
			second := ClusterResourceBindingToV1alpha2(ClusterResourceBindingFromV1alpha2(first))
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("the second round differs from the first (-first +second):\n%s", diff)
			}
		}
	})
}
