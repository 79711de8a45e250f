package batch

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// flink returns the rules for the kinds of the Flink operator.
func flink() kinds.Table {
	lifecycle := []string{"FAILED", "ROLLING_BACK", "ROLLED_BACK", "DELETING", rules.Others, "UPGRADING", "CREATED", "DEPLOYED", "SUSPENDED", "STABLE"}
	deployment := []string{"ERROR", rules.Others, "MISSING", "DEPLOYING", "DEPLOYED_NOT_READY", "READY"}
	job := []string{"FAILED", "FAILING", rules.Others, "RESTARTING", "CANCELLING", "CANCELED", "INITIALIZING", "RECONCILING", "CREATED",
		"SUSPENDED", "RUNNING", "FINISHED"}
	return kinds.Table{words.Kind("flink.apache.org/v1beta1", "FlinkDeployment"): words.Graded(kinds.Rules{
		Replicas:   flinkReplicas,
		Components: func(obj kinds.Object) (words.Components, error) { r := flinkRoles(obj); return r.Result() },
		// status.reconciliationStatus is left out: it repeats the spec that was
		// deployed last, as text.
		Reflect: rules.ReflectTracked("jobStatus", "jobManagerDeploymentStatus", "lifecycleState", "taskManager", "error", "clusterInfo"),
		Aggregate: rules.Aggregate(rules.FromWorst("jobStatus", "jobStatus.state", "CREATED", job...),
			rules.Worst("jobManagerDeploymentStatus", "MISSING", deployment...),
			rules.Worst("lifecycleState", "CREATED", lifecycle...), flinkWorkers, rules.Quote("error"), rules.Alike("clusterInfo"), rules.Observe),
		Dependencies: words.Needs(words.Pods("spec.podTemplate.spec", "spec.jobManager.podTemplate.spec", "spec.taskManager.podTemplate.spec"),
			words.ServiceAccounts("spec.serviceAccount")),
	}, flinkGrade)}
}

// flinkGrade grades by the state of the job once there is one: the operator
// removes the job manager of a job that has finished, and restarts a job that
// fails. Before that, it grades by the job manager's deployment and the lifecycle
// state.
func flinkGrade(obj kinds.Object) words.Grade {
	const state, manager, lifecycle = "status.jobStatus.state", "status.jobManagerDeploymentStatus", "status.lifecycleState"
	session := rules.Object(obj.Object, "spec", "job") == nil
	switch {
	case words.Meets(words.All(words.Current, flinkSuspended), obj),
		words.Meets(words.All(words.Current, words.Word(state, "RUNNING", "FINISHED")), obj),
		session && words.Meets(words.All(words.Current, words.Word(manager, "READY"), words.Word(lifecycle, "", "DEPLOYED", "STABLE")), obj):
		return words.Fine
	case rules.Text(obj.Object, words.At(state)...) != "":
		return words.Waiting
	case words.Meets(words.OneOf(words.Word(manager, "ERROR"), words.Word(lifecycle, "FAILED")), obj):
		return words.Failing
	case words.Meets(words.OneOf(words.Word(manager, "DEPLOYING", "DEPLOYED_NOT_READY", "READY"), words.Word(lifecycle, "UPGRADING", "DEPLOYED", "STABLE", "SUSPENDED")), obj):
		return words.Waiting
	default:
		return words.Failing
	}
}

// flinkSuspended reports whether the job is suspended, and was meant to be.
func flinkSuspended(obj kinds.Object) (bool, error) {
	return words.All(words.Word("spec.job.state", "suspended"), words.Word("status.lifecycleState", "SUSPENDED"))(obj)
}

// flinkWorkers adds up the replicas of the task managers, and keeps their label
// selector where the clusters agree on it.
func flinkWorkers(status map[string]any, r rules.Reports) {
	rules.Put(status, rules.SumOf(r.Parts, "taskManager", "replicas"), "taskManager", "replicas")
	below := rules.Reports{Template: r.Template}
	for _, p := range r.Parts {
		below.Parts = append(below.Parts, rules.Part{Cluster: p.Cluster, Status: rules.Object(p.Status, "taskManager")})
	}
	rules.Same("labelSelector")(rules.Object(status, "taskManager"), below)
}

// flinkReplicas counts the pods of all roles. Each is taken to need the larger of
// what the roles need, resource by resource.
func flinkReplicas(obj kinds.Object) (int32, *words.Needed, error) {
	r := flinkRoles(obj)
	if r.Err != nil {
		return 0, nil, r.Err
	}
	var n int64
	need := &words.Needed{Namespace: obj.GetNamespace()}
	for _, part := range r.Parts {
		n += int64(part.Replicas)
		if req := part.ReplicaRequirements; req != nil {
			need.ResourceRequest = rules.Most(need.ResourceRequest, req.ResourceRequest)
			if need.NodeClaim == nil {
				need.NodeClaim = req.NodeClaim
			}
			need.PriorityClassName = cmp.Or(need.PriorityClassName, req.PriorityClassName)
		}
	}
	if need.NodeClaim == nil && need.ResourceRequest == nil && need.PriorityClassName == "" {
		need = nil
	}
	return int32(min(n, math.MaxInt32)), need, nil
}

func flinkRoles(obj kinds.Object) words.Roster {
	r := words.Roster{Namespace: obj.GetNamespace()}
	for _, role := range []struct {
		name, field string
		replicas    int64
	}{{"jobmanager", "jobManager", words.CountOr(1, obj.Object, "spec", "jobManager", "replicas")}, {"taskmanager", "taskManager", taskManagers(obj)}} {
		need, err := flinkNeed(obj, role.field)
		if err != nil {
			r.Fail(role.name, err)
			continue
		}
		r.Add(role.name, role.replicas, need)
	}
	return r
}

// taskManagers returns the number of task managers: spec.taskManager.replicas
// where it is set, else the parallelism of the job divided by the slots of a task
// manager, rounded up. It is one where that cannot be worked out, and for a
// session cluster, which starts task managers as it needs them.
func taskManagers(obj kinds.Object) int64 {
	if n, ok := number(rules.Value(obj.Object, "spec", "taskManager", "replicas")); ok {
		return n
	}
	if rules.Object(obj.Object, "spec", "job") == nil {
		return 1
	}
	config := rules.Object(obj.Object, "spec", "flinkConfiguration")
	slots, reported := number(config["taskmanager.numberOfTaskSlots"])
	if config["taskmanager.numberOfTaskSlots"] == nil {
		slots, reported = 1, true
	}
	parallelism, asked := number(rules.Value(obj.Object, "spec", "job", "parallelism"))
	if !asked {
		parallelism, asked = number(config["parallelism.default"])
	}
	if !reported || !asked || slots < 1 || parallelism < 1 {
		return 1
	}
	return (parallelism-1)/slots + 1
}

// number reads a whole number, which may be written as text; false for anything
// else.
func number(v any) (int64, bool) {
	switch v := v.(type) {
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 32)
		return n, err == nil
	case int64, float64:
		return rules.Number(map[string]any{"n": v}, "n"), true
	default:
		return 0, false
	}
}

// flinkNeed returns what one pod of a role needs: what its pod template, or else
// the common one, requests for all but the main container, plus the resource of
// the role. The operator takes the main container's resources from the latter.
func flinkNeed(obj kinds.Object, role string) (*words.Needed, error) {
	template := rules.Object(obj.Object, "spec", role, "podTemplate", "spec")
	if template == nil {
		template = rules.Object(obj.Object, "spec", "podTemplate", "spec")
	}
	others := maps.Clone(template)
	if others != nil {
		others["containers"] = words.Sidecars(template, "flink-main-container")
	}
	need, err := words.Requirements(obj.GetNamespace(), others)
	if err != nil {
		return nil, err
	}
	own := corev1.ResourceList{}
	spec := rules.Object(obj.Object, "spec", role, "resource")
	if cpu := spec["cpu"]; cpu != nil {
		if own[corev1.ResourceCPU], err = rules.Amount(cpu); err != nil {
			return nil, fmt.Errorf("cpu: %w", err)
		}
	}
	if text := rules.Text(spec, "memory"); text != "" {
		if own[corev1.ResourceMemory], err = rules.Memory(text, 1); err != nil {
			return nil, err
		}
	}
	if text := rules.Text(spec, "ephemeralStorage"); text != "" {
		if own[corev1.ResourceEphemeralStorage], err = rules.Memory(text, 1); err != nil {
			return nil, err
		}
	}
	class := cmp.Or(rules.Text(template, "priorityClassName"), rules.Text(obj.Object, "spec", "podTemplate", "spec", "priorityClassName"))
	return words.Classed(obj.GetNamespace(), words.Plus(obj.GetNamespace(), need, own), class), nil
}
