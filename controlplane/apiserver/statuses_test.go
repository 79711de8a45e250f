package apiserver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane" // installs the APIs
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// rules are what the server asks of a new status.
type rules interface {
	PrepareForUpdate(ctx context.Context, obj, old runtime.Object)
	ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList
}

const (
	metadata = `metadata: {name: x, namespace: d, generation: 2, uid: u, resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z"}`
	podRest  = `dnsPolicy: Default, terminationGracePeriodSeconds: 1, containers: [{name: a, image: i, imagePullPolicy: Always, terminationMessagePath: /x, terminationMessagePolicy: File}]`
	selected = `selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Always, ` + podRest + `}}`
	cluster  = `clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ports: [{port: 80}]`
)

// TestStatuses: whatever members report of the kinds that are built in, the
// server accepts the status that the template gets of it, step after step, and
// reads back what was meant, so that nothing is written twice.
func TestStatuses(t *testing.T) {
	cases := map[string]struct {
		kind, spec string
		rules      rules
	}{
		"a deployment":            {"apps/v1 Deployment", `{replicas: 4, ` + selected + `}`, deployment.StatusStrategy},
		"a replica set":           {"apps/v1 ReplicaSet", `{replicas: 4, ` + selected + `}`, replicaset.StatusStrategy},
		"a stateful set":          {"apps/v1 StatefulSet", `{replicas: 4, ` + selected + `}`, statefulset.StatusStrategy},
		"a daemon set":            {"apps/v1 DaemonSet", `{` + selected + `}`, daemonset.StatusStrategy},
		"a job":                   {"batch/v1 Job", `{completions: 2, ` + selected + `}`, job.StatusStrategy},
		"a cron job":              {"batch/v1 CronJob", `{schedule: "* * * * *", concurrencyPolicy: Allow, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, ` + podRest + `}}}}}`, cronjob.StatusStrategy},
		"a pod that goes on":      {"v1 Pod", `{restartPolicy: Always, ` + podRest + `}`, pod.StatusStrategy},
		"a pod that runs once":    {"v1 Pod", `{restartPolicy: Never, ` + podRest + `}`, pod.StatusStrategy},
		"a pod that tries again":  {"v1 Pod", `{restartPolicy: OnFailure, ` + podRest + `}`, pod.StatusStrategy},
		"a load balancer":         {"v1 Service", `{type: LoadBalancer, ` + cluster + `}`, service.StatusStrategy},
		"another service":         {"v1 Service", `{type: ClusterIP, ` + cluster + `}`, service.StatusStrategy},
		"a claim":                 {"v1 PersistentVolumeClaim", `{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`, persistentvolumeclaim.StatusStrategy},
		"a volume":                {"v1 PersistentVolume", `{}`, persistentvolume.StatusStrategy},
		"an ingress":              {"networking.k8s.io/v1 Ingress", `{}`, ingress.StatusStrategy},
		"a disruption budget":     {"policy/v1 PodDisruptionBudget", `{}`, poddisruptionbudget.StatusStrategy},
		"a horizontal autoscaler": {"autoscaling/v2 HorizontalPodAutoscaler", `{maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: x}}`, horizontalpodautoscaler.StatusStrategy},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var apiVersion, kind string
			if _, err := fmt.Sscan(tc.kind, &apiVersion, &kind); err != nil {
				t.Fatal(err)
			}
			fresh := asRead(t, parse(t, `{apiVersion: `+apiVersion+`, kind: `+kind+`, `+metadata+`, spec: `+tc.spec+`}`))
			for seed := range uint64(60) {
				live(t, fresh.DeepCopy(), tc.rules, rand.New(rand.NewPCG(seed, 0))) //nolint:gosec // no secret
			}
		})
	}
}

// live has two members report one thing after the other.
func live(t *testing.T, template *unstructured.Unstructured, server rules, r *rand.Rand) {
	t.Helper()
	know, members := interpreter.Native(), []map[string]any{{}, {}}
	gv := template.GroupVersionKind().GroupVersion()
	ctx := request.WithRequestInfo(request.NewDefaultContext(), &request.RequestInfo{APIGroup: gv.Group, APIVersion: gv.Version, Subresource: "status"})
	for range 6 {
		var items []workv1alpha2.AggregatedStatusItem
		for i, status := range members {
			change(status, r)
			copied := template.DeepCopy()
			copied.SetAnnotations(map[string]string{workv1alpha2.ResourceTemplateGenerationAnnotationKey: strconv.Itoa(r.IntN(3))})
			copied.Object["status"] = runtime.DeepCopyJSON(status)
			reported, err := know.ReflectStatus(copied)
			if err != nil {
				t.Fatal(err)
			}
			items = append(items, workv1alpha2.AggregatedStatusItem{ClusterName: "m" + strconv.Itoa(i), Status: reported})
		}
		status, changed, err := know.AggregateStatus(template, items)
		if err != nil {
			t.Fatal(err)
		}
		if !changed {
			continue
		}
		was, next := internal(t, template), template.DeepCopy()
		next.Object["status"] = status
		is := internal(t, next)
		server.PrepareForUpdate(ctx, is, was)
		if errs := server.ValidateUpdate(ctx, is, was); len(errs) > 0 {
			t.Fatalf("the server refuses it: %v\nwas %v\nnow %v", errs.ToAggregate(), template.Object["status"], status)
		}
		template = external(t, is, gv)
		if again, changed, err := know.AggregateStatus(template, items); err != nil || changed {
			t.Fatalf("written twice: %v\nfirst  %v\nsecond %v", err, template.Object["status"], again)
		}
	}
}

// change has a member report something else, most of which makes sense.
func change(s map[string]any, r *rand.Rand) {
	some := func(values ...any) any { return values[r.IntN(len(values))] }
	when := func() any {
		return some("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T02:00:00+02:00", "2026-01-04T00:00:00.123Z", "soon", int64(4), nil)
	}
	count := func() any {
		return some(int64(0), int64(1), int64(2), int64(3), int64(-1), int64(1)<<40, "x", 1.5, nil)
	}
	set := func(value func() any, names ...string) {
		for _, name := range names {
			if r.IntN(2) == 0 {
				s[name] = value()
			}
		}
	}
	set(count, "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas", "currentReplicas",
		"fullyLabeledReplicas", "succeeded", "failed", "currentNumberScheduled", "desiredNumberScheduled", "numberAvailable",
		"numberMisscheduled", "numberReady", "updatedNumberScheduled", "numberUnavailable", "disruptionsAllowed", "expectedPods",
		"desiredHealthy", "currentHealthy", "desiredReplicas", "observedGeneration")
	set(when, "startTime", "completionTime", "lastScheduleTime", "lastSuccessfulTime")
	set(func() any { return some("a", "b", int64(3), nil) }, "currentRevision", "updateRevision")
	set(func() any {
		return some("Bound", "Lost", "Pending", "Running", "Succeeded", "Failed", "Available", "Released", "Odd", int64(1))
	}, "phase")
	set(func() any { return map[string]any{"p": when(), "q": when()} }, "disruptedPods")
	set(func() any {
		return some([]any{map[string]any{"name": "j", "odd": "x"}}, []any{map[string]any{"name": int64(1)}, "x"}, int64(1), int64(0))
	}, "active")
	set(func() any { return conditions(some, when) }, "conditions")
	set(func() any {
		address := map[string]any{"ip": some("1.1.1.1", "::1", "::ffff:1.1.1.1", "01.1.1.1", "x", "", int64(1)), "hostname": some("a.b", "A_B", "", "1.1.1.1"),
			"ipMode": some("VIP", "Proxy", "odd", nil), "ports": some(nil, []any{map[string]any{"port": int64(80), "protocol": "TCP", "error": "Busy"}}, "x")}
		return map[string]any{"ingress": []any{address, some("x", map[string]any{"ip": "2.2.2.2"})}}
	}, "loadBalancer")
	set(func() any {
		state := func() any {
			return some(nil, "odd", map[string]any{"running": map[string]any{"startedAt": when()}}, map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff"}},
				map[string]any{"terminated": map[string]any{"exitCode": int64(r.IntN(2))}})
		}
		return []any{map[string]any{"name": "a", "ready": some(true, false, "x"), "state": state()}, map[string]any{"name": "b", "state": state()}, int64(7)}
	}, "containerStatuses")
}

func conditions(some func(...any) any, when func() any) []any {
	out := []any{"x"}
	for _, name := range []string{
		"Available", "Progressing", "ReplicaFailure", "Complete", "Failed", "Suspended", "SuccessCriteriaMet", "FailureTarget", "Ready", "PodScheduled",
		"Initialized", "ContainersReady", "DisruptionAllowed", "AbleToScale", "ScalingActive", "ScalingLimited", "Resizing", "FileSystemResizePending",
	} {
		if some(true, false, false) == true {
			out = append(out, map[string]any{"type": name, "status": some("True", "False", "Unknown", "odd", true), "reason": some("A", "", "not one word", int64(2)),
				"message": some("m", "", int64(1)), "lastTransitionTime": when()})
		}
	}
	return out
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

// asRead returns the object as it is read from the server.
func asRead(t *testing.T, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	return external(t, internal(t, obj), obj.GroupVersionKind().GroupVersion())
}

func internal(t *testing.T, obj *unstructured.Unstructured) runtime.Object {
	t.Helper()
	data, err := obj.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	to := schema.GroupVersion{Group: obj.GroupVersionKind().Group, Version: runtime.APIVersionInternal}
	out, _, err := legacyscheme.Codecs.UniversalDecoder(to).Decode(data, nil, nil)
	if err != nil {
		t.Fatalf("the server cannot read it: %v\n%s", err, data)
	}
	return out
}

func external(t *testing.T, obj runtime.Object, gv schema.GroupVersion) *unstructured.Unstructured {
	t.Helper()
	data, err := runtime.Encode(legacyscheme.Codecs.LegacyCodec(gv), obj)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(data))
}
