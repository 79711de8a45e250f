package batch

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// spark returns the rules for the kinds of the Spark operator.
func spark() kinds.Table {
	const state = "applicationState.state"
	states := []string{
		"FAILED", "FAILING", "SUBMISSION_FAILED", "UNKNOWN", "INVALIDATING", "PENDING_RERUN", "SUSPENDING", "SUSPENDED", "RESUMING",
		rules.Others, "", "SUBMITTED", "RUNNING", "SUCCEEDING", "COMPLETED",
	}
	return kinds.Table{words.Kind("sparkoperator.k8s.io/v1beta2", "SparkApplication"): words.Graded(kinds.Rules{
		Components: sparkRoles,
		Reflect: rules.Reflect("applicationState", "driverInfo", "executorState", "executionAttempts", "submissionAttempts",
			"lastSubmissionAttemptTime", "terminationTime", "sparkApplicationId", "submissionID"),
		Aggregate: rules.Aggregate(rules.FromWorst("applicationState", state, "SUBMITTED", states...), executors,
			rules.Greatest("executionAttempts", "submissionAttempts"), rules.Latest("lastSubmissionAttemptTime"), rules.Ended("terminationTime"),
			rules.Same("sparkApplicationId", "submissionID"), rules.Alike("driverInfo"),
			rules.Default(map[string]any{"driverInfo": map[string]any{}})),
		Dependencies: words.Needs(
			words.ServiceAccounts("spec.driver.serviceAccount", "spec.executor.serviceAccount"),
			words.Secrets("spec.imagePullSecrets.*", "spec.*.secrets.*.name", "spec.*.envSecretKeyRefs.*.name"),
			words.ConfigMaps("spec.sparkConfigMap", "spec.hadoopConfigMap", "spec.*.configMaps.*.name"),
			words.PodsOf(words.PodOf{Containers: []string{"spec.driver", "spec.executor", "spec.*.sidecars.*", "spec.*.initContainers.*"},
				Volumes: []string{"spec.volumes.*"}}),
			words.Pods("spec.driver.template.spec", "spec.executor.template.spec"),
		),
	}, sparkGrade)}
}

// sparkGrade grades by the state of an application. The operator sets an empty
// state for an application that it has taken up, and retries a submission that
// failed: both wait.
func sparkGrade(obj kinds.Object) words.Grade {
	const state = "status.applicationState.state"
	switch {
	case !words.Meets(words.There(state), obj) || words.Meets(words.Word(state, "FAILED"), obj):
		return words.Failing
	case words.Meets(words.Word(state, "RUNNING", "SUCCEEDING", "COMPLETED"), obj), words.Meets(words.All(words.Asks("spec.suspend"), words.Word(state, "SUSPENDED")), obj):
		return words.Fine
	default:
		return words.Waiting
	}
}

// mostExecutors is how many executors the status of a template lists.
const mostExecutors = 100

// executors sets the state of each executor, with its cluster before its name
// where there are several clusters.
func executors(status map[string]any, r rules.Reports) {
	all := map[string]any{}
	for _, p := range r.Parts {
		states := rules.Object(p.Status, "executorState")
		for _, name := range slices.Sorted(maps.Keys(states)) {
			state, ok := states[name].(string)
			if !ok || len(all) == mostExecutors {
				continue
			}
			if len(r.Parts) > 1 {
				name = p.Cluster + "/" + name
			}
			all[name] = state
		}
	}
	delete(status, "executorState")
	if len(all) > 0 {
		status["executorState"] = all
	}
}

func sparkRoles(obj kinds.Object) (words.Components, error) {
	r := words.Roster{Namespace: obj.GetNamespace()}
	for _, role := range []struct {
		name     string
		replicas int64
	}{{"driver", 1}, {"executor", sparkExecutors(obj)}} {
		need, err := sparkNeed(obj, role.name)
		if err != nil {
			r.Fail(role.name, err)
			continue
		}
		r.Add(role.name, role.replicas, need)
	}
	return r.Result()
}

// sparkExecutors returns how many executors a job starts with.
func sparkExecutors(obj kinds.Object) int64 {
	n := words.CountOr(1, obj.Object, "spec", "executor", "instances")
	dynamic := rules.Object(obj.Object, "spec", "dynamicAllocation")
	if rules.Bool(dynamic, "enabled") {
		n = max(rules.Number(obj.Object, "spec", "executor", "instances"), rules.Number(dynamic, "initialExecutors"),
			rules.Number(dynamic, "minExecutors"))
	}
	return n
}

const (
	mebi = 1 << 20
	// leastOverhead is the memory, in bytes, that a pod gets at least beyond its
	// heap.
	leastOverhead = 384 * mebi
)

// sparkNeed returns what one pod of a role needs. Its memory is the heap plus an
// overhead; an amount without a unit is in mebibytes.
func sparkNeed(obj kinds.Object, name string) (*words.Needed, error) {
	role := rules.Object(obj.Object, "spec", name)
	podSpec := words.Pick(role, "nodeSelector", "tolerations", "affinity", "initContainers")
	podSpec["containers"] = rules.List(role, "sidecars")
	if podSpec["nodeSelector"] == nil && rules.Value(obj.Object, "spec", "nodeSelector") != nil {
		podSpec["nodeSelector"] = rules.Value(obj.Object, "spec", "nodeSelector")
	}
	need, err := words.Requirements(obj.GetNamespace(), podSpec)
	if err != nil {
		return nil, err
	}
	own := corev1.ResourceList{}
	if own[corev1.ResourceCPU], err = sparkCores(role); err != nil {
		return nil, err
	}
	if own[corev1.ResourceMemory], err = sparkMemory(obj, role); err != nil {
		return nil, err
	}
	if gpu := rules.Text(role, "gpu", "name"); gpu != "" {
		own[corev1.ResourceName(gpu)] = *resource.NewQuantity(rules.Number(role, "gpu", "quantity"), resource.DecimalSI)
	}
	return words.Classed(obj.GetNamespace(), words.Plus(obj.GetNamespace(), need, own), rules.Text(role, "priorityClassName")), nil
}

func sparkCores(role map[string]any) (resource.Quantity, error) {
	for _, field := range []string{"coreRequest", "cores"} {
		if v := role[field]; v != nil {
			q, err := rules.Amount(v)
			if err != nil {
				return q, fmt.Errorf("%s: %w", field, err)
			}
			return q, nil
		}
	}
	return *resource.NewQuantity(1, resource.DecimalSI), nil
}

func sparkMemory(obj kinds.Object, role map[string]any) (resource.Quantity, error) {
	heap, err := sparkAmount(role, "memory", "1g")
	if err != nil {
		return heap, err
	}
	if rules.Text(role, "memoryOverhead") != "" {
		overhead, err := sparkAmount(role, "memoryOverhead", "")
		heap.Add(overhead)
		return heap, err
	}
	factor, err := sparkFactor(obj)
	if err != nil {
		return heap, err
	}
	overhead := max(int64(min(float64(heap.Value())*factor, 1<<62)), leastOverhead)
	// Spark rounds the overhead down to whole mebibytes.
	heap.Add(*resource.NewQuantity(overhead/mebi*mebi, resource.BinarySI))
	return heap, nil
}

func sparkAmount(role map[string]any, field, none string) (resource.Quantity, error) {
	text := rules.Text(role, field)
	if text == "" {
		text = none
	}
	q, err := rules.Memory(text, mebi)
	if err != nil {
		return q, fmt.Errorf("%s: %w", field, err)
	}
	return q, nil
}

// sparkFactor returns the overhead as a share of the heap. Programs in Python and
// R, which do not run on the JVM, get more.
func sparkFactor(obj kinds.Object) (float64, error) {
	if text := rules.Text(obj.Object, "spec", "memoryOverheadFactor"); text != "" {
		factor, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(factor) || factor < 0 {
			return 0, fmt.Errorf("memoryOverheadFactor is no factor: %.40q", text)
		}
		return factor, nil
	}
	switch rules.Text(obj.Object, "spec", "type") {
	case "Python", "R":
		return 0.4, nil
	default:
		return 0.1, nil
	}
}
