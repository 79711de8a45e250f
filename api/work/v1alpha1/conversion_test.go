package v1alpha1

import (
	"encoding/json"
	"errors"
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

func TestConvert(t *testing.T) {
	encode := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	clusterKind := func(b *ResourceBinding) []byte {
		b.Kind = "ClusterResourceBinding"
		return encode(b)
	}
	clusterHub := hub()
	clusterHub.Kind = "ClusterResourceBinding"

	cases := map[string]struct {
		object     []byte
		apiVersion string
		want       []byte
		wantErr    error
	}{
		"to v1alpha2":               {encode(spoke()), "work.karmada.io/v1alpha2", encode(hub()), nil},
		"to v1alpha1":               {encode(hub()), "work.karmada.io/v1alpha1", encode(spoke()), nil},
		"cluster kind":              {clusterKind(spoke()), "work.karmada.io/v1alpha2", encode(clusterHub), nil},
		"cluster kind, back":        {encode(clusterHub), "work.karmada.io/v1alpha1", clusterKind(spoke()), nil},
		"already there":             {[]byte(`{"apiVersion":"work.karmada.io/v1alpha2","x":1}`), "work.karmada.io/v1alpha2", []byte(`{"apiVersion":"work.karmada.io/v1alpha2","x":1}`), nil},
		"a kind that never changed": {[]byte(`{"apiVersion":"work.karmada.io/v1alpha1","kind":"Work"}`), "work.karmada.io/v1alpha2", nil, ErrConversion},
		"a version that is unknown": {encode(hub()), "work.karmada.io/v1", nil, ErrConversion},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Convert(c.object, c.apiVersion)
			if !errors.Is(err, c.wantErr) {
				t.Fatalf("error %v, want %v", err, c.wantErr)
			}
			if diff := cmp.Diff(string(c.want), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is converted there and back and there again is what it was the first
// time, and nothing panics on foreign bytes.
func FuzzConvert(f *testing.F) {
	for _, seed := range []any{spoke(), hub(), &ClusterResourceBinding{TypeMeta: metav1.TypeMeta{APIVersion: "work.karmada.io/v1alpha1", Kind: "ClusterResourceBinding"}}} {
		data, err := json.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"apiVersion":"work.karmada.io/v1alpha1","kind":"ResourceBinding","spec":{"resource":{"replicas":-1},"clusters":null}}`))
	f.Add([]byte(`{"apiVersion":"work.karmada.io/v1alpha1","kind":"ResourceBinding","spec":{"resource":{"resourcePerReplicas":{}}}}`))
	f.Add([]byte(`{"ApiVersion":"work.karmada.io/v1alpha1","kind":"ResourceBinding"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, object []byte) {
		old, err := Convert(object, "work.karmada.io/v1alpha1")
		if err != nil {
			t.Skip("no binding")
		}
		stored, err := Convert(old, "work.karmada.io/v1alpha2")
		if err != nil {
			t.Skip("no binding")
		}
		again, err := Convert(stored, "work.karmada.io/v1alpha1")
		if err != nil {
			t.Fatalf("what was converted to v1alpha2 does not convert back: %v", err)
		}
		storedAgain, err := Convert(again, "work.karmada.io/v1alpha2")
		if err != nil {
			t.Fatalf("what was converted back does not convert: %v", err)
		}
		if diff := cmp.Diff(string(stored), string(storedAgain)); diff != "" {
			t.Errorf("the second round differs from the first (-first +second):\n%s", diff)
		}
	})
}
