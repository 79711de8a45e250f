package interpreter_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/native"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// statuses are the Go types of the statuses of kinds; nil where the kind has
// none.
var statuses = map[string]func() any{
	"Deployment":              func() any { return &appsv1.DeploymentStatus{} },
	"ReplicaSet":              func() any { return &appsv1.ReplicaSetStatus{} },
	"ReplicationController":   func() any { return &corev1.ReplicationControllerStatus{} },
	"StatefulSet":             func() any { return &appsv1.StatefulSetStatus{} },
	"DaemonSet":               func() any { return &appsv1.DaemonSetStatus{} },
	"Job":                     func() any { return &batchv1.JobStatus{} },
	"CronJob":                 func() any { return &batchv1.CronJobStatus{} },
	"Pod":                     func() any { return &corev1.PodStatus{} },
	"Service":                 func() any { return &corev1.ServiceStatus{} },
	"PersistentVolume":        func() any { return &corev1.PersistentVolumeStatus{} },
	"PersistentVolumeClaim":   func() any { return &corev1.PersistentVolumeClaimStatus{} },
	"Ingress":                 func() any { return &networkingv1.IngressStatus{} },
	"PodDisruptionBudget":     func() any { return &policyv1.PodDisruptionBudgetStatus{} },
	"HorizontalPodAutoscaler": func() any { return &autoscalingv2.HorizontalPodAutoscalerStatus{} },
}

// builtIn returns all kinds with native rules, and one without any, sorted.
func builtIn() []schema.GroupVersionKind {
	gvks := []schema.GroupVersionKind{{Group: "example.io", Version: "v1", Kind: "Unknown"}}
	for gvk := range native.Table() {
		gvks = append(gvks, gvk)
	}
	slices.SortFunc(gvks, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return gvks
}

// FuzzNative checks, for anything that members and users write: no operation
// panics or changes what came in, Retain is idempotent, aggregating a second time
// or in another order changes nothing, and an API server can decode the status.
func FuzzNative(f *testing.F) {
	seeds := []string{
		`{"spec":{"replicas":3,"template":{"spec":{"nodeSelector":{"a":"b"},"containers":[{"name":"a","env":[{"valueFrom":{"secretKeyRef":{"name":"s"}}}]}],"volumes":[{"configMap":{"name":"c"}}]}}},"status":{"replicas":1}}`,
		`{"status":{"conditions":[{"type":"Failed","status":"True"},{"type":"Available","status":1}],"startTime":1,"succeeded":-4,"failed":1e300}}`,
		`{"spec":{"type":"LoadBalancer","clusterIP":"10.0.0.1","ports":[{"port":80,"nodePort":30000},7]},"status":{"loadBalancer":{"ingress":["x",{"ip":"nonsense"},{"ip":"10.0.0.1","ports":[{"port":1,"protocol":"TCP"}]},{"hostname":"a b"}]}}}`,
		`{"status":{"phase":7,"containerStatuses":[1,{"name":"a","ready":"x","state":{"running":{"startedAt":"never"}}},{"name":"b","state":{"terminated":{"exitCode":0}}}]}}`,
		`{"status":"fine","spec":[],"metadata":{"labels":7,"managedFields":"x"},"imagePullSecrets":[{"name":"a"}],"data":{}}`,
		`{"metadata":{"generation":2,"managedFields":[{"manager":"m","subresource":"scale","fieldsV1":{"f:spec":{"f:replicas":{}}}}]},"spec":{"replicas":-1,"parallelism":"x","tls":[{"secretName":"t"}]},"status":{"disruptedPods":{"p":"x","q":"2026-01-01T00:00:00Z"},"active":[{"name":1},{"name":"j"}],"lastScheduleTime":"2026-01-01T00:00:00+02:00"}}`,
		`{"status":{"currentRevision":"a","updateRevision":"b","observedGeneration":99999999999,"readyReplicas":9999999999,"replicas":2147483647,"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","message":"` + strings.Repeat("é", 400) + `"}]}}`,
	}
	for i, seed := range seeds {
		for kind := range builtIn() {
			f.Add(seed, seeds[(i+1)%len(seeds)], uint8(kind))
		}
	}
	gvks, know := builtIn(), interpreter.Native()
	f.Fuzz(func(t *testing.T, one, other string, kind uint8) {
		gvk := gvks[int(kind)%len(gvks)]
		a, b := decode(one, gvk), decode(other, gvk)
		if a == nil || b == nil {
			return
		}
		wasA, wasB := a.DeepCopy(), b.DeepCopy()
		// An error for fields of a pod that have an unexpected type is fine.
		_, _, _, _ = know.Replicas(a)
		_, _, _ = know.Revise(a, 3)
		_, _, _ = know.Dependencies(a)
		if _, err := know.Health(a); err != nil {
			t.Fatal(err)
		}
		keepTwice(t, know, a, b)
		addUp(t, know, a, b)
		if !reflect.DeepEqual(wasA.Object, a.Object) || !reflect.DeepEqual(wasB.Object, b.Object) {
			t.Fatalf("what came in was changed:\n%v\n%v", a.Object, b.Object)
		}
	})
}

func decode(text string, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	if utiljson.Unmarshal([]byte(text), &obj.Object) != nil || obj.Object == nil {
		return nil
	}
	if m, ok := obj.Object["metadata"]; ok {
		if _, ok := m.(map[string]any); !ok {
			delete(obj.Object, "metadata") // no API server accepts such metadata
		}
	}
	obj.SetGroupVersionKind(gvk)
	return obj
}

func keepTwice(t *testing.T, know *interpreter.Interpreter, desired, observed *unstructured.Unstructured) {
	t.Helper()
	once, err := know.Retain(desired, observed)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := know.Retain(once, observed)
	if err != nil || !reflect.DeepEqual(once.Object, twice.Object) {
		t.Fatalf("keeping twice is not keeping once: %v\n%v\n%v", err, once.Object, twice.Object)
	}
	if !know.Retains(desired) && !rules.Scaled(observed) && !reflect.DeepEqual(once.Object, desired.Object) {
		t.Fatalf("keeps something without a need to look: %v", once.Object)
	}
}

func addUp(t *testing.T, know *interpreter.Interpreter, a, b *unstructured.Unstructured) {
	t.Helper()
	items := []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1"}, {ClusterName: "m2"}, {ClusterName: "m3"}}
	for i, obj := range []*unstructured.Unstructured{a, b} {
		status, err := know.ReflectStatus(obj)
		if err != nil {
			t.Fatal(err)
		}
		items[i].Status = status
	}
	template := a.DeepCopy()
	unstructured.RemoveNestedField(template.Object, "status")
	status, _, err := know.AggregateStatus(template, items)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(items)
	if reversed, _, err := know.AggregateStatus(template, items); err != nil || !reflect.DeepEqual(status, reversed) {
		t.Fatalf("the order of clusters matters: %v\n%v\n%v", err, status, reversed)
	}
	template.Object["status"] = status
	if again, changed, err := know.AggregateStatus(template, items); err != nil || changed {
		t.Fatalf("adding up twice is not adding up once: %v\n%v\n%v", err, status, again)
	}
	readable(t, a.GetKind(), status)
}

// readable checks that an API server can decode the status, and that it would
// accept its counts.
func readable(t *testing.T, kind string, status map[string]any) {
	t.Helper()
	empty := statuses[kind]
	if empty == nil {
		return
	}
	typed := empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, typed); err != nil {
		t.Fatalf("no server reads this status of a %s: %v\n%v", kind, err, status)
	}
	if d, ok := typed.(*appsv1.DeploymentStatus); ok && (d.ReadyReplicas > d.Replicas || d.UpdatedReplicas > d.Replicas || d.AvailableReplicas > d.ReadyReplicas || d.Replicas < 0) {
		data, _ := json.Marshal(status) // cannot fail: it was decoded from JSON
		t.Fatalf("no server accepts these counts: %s", data)
	}
}
