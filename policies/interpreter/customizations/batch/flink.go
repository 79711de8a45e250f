package batch

import (
	"fmt"
	"maps"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// flink is the operator of Apache Flink.
func flink() kinds.Table {
	lifecycle := []string{"FAILED", "ROLLING_BACK", "ROLLED_BACK", "DELETING", rules.Others, "UPGRADING", "CREATED", "DEPLOYED", "SUSPENDED", "STABLE"}
	deployment := []string{"ERROR", rules.Others, "MISSING", "DEPLOYING", "DEPLOYED_NOT_READY", "READY"}
	job := []string{"FAILED", "FAILING", rules.Others, "RESTARTING", "CANCELLING", "CANCELED", "INITIALIZING", "RECONCILING", "CREATED",
		"SUSPENDED", "RUNNING", "FINISHED"}
	return kinds.Table{words.Kind("flink.apache.org/v1beta1", "FlinkDeployment"): words.Graded(kinds.Rules{
		Replicas:   flinkReplicas,
		Components: func(obj kinds.Object) (words.Components, error) { r := flinkRoles(obj); return r.Result() },
		// What was deployed last comes with the status as text: that is not
		// reported.
		Reflect: rules.ReflectTracked("jobStatus", "jobManagerDeploymentStatus", "lifecycleState", "taskManager", "error", "clusterInfo"),
		Aggregate: rules.Aggregate(rules.FromWorst("jobStatus", "jobStatus.state", "CREATED", job...),
			rules.Worst("jobManagerDeploymentStatus", "MISSING", deployment...),
			rules.Worst("lifecycleState", "CREATED", lifecycle...), flinkWorkers, rules.Quote("error"), rules.Alike("clusterInfo"), rules.Observe),
		Dependencies: words.Needs(words.Pods("spec.podTemplate.spec", "spec.jobManager.podTemplate.spec", "spec.taskManager.podTemplate.spec"),
			words.ServiceAccounts("spec.serviceAccount")),
	}, flinkGrade)}
}

// flinkGrade goes by what the job says, once it says anything: the operator takes
// the job manager of one that has finished away, and has one that fails start again.
func flinkGrade(obj kinds.Object) words.Grade {
	const state, manager, lifecycle = "status.jobStatus.state", "status.jobManagerDeploymentStatus", "status.lifecycleState"
	session := rules.Object(obj.Object, "spec", "job") == nil
	switch {
	case words.Says(words.All(words.Current, flinkSuspended), obj),
		words.Says(words.All(words.Current, words.Word(state, "RUNNING", "FINISHED")), obj),
		session && words.Says(words.All(words.Current, words.Word(manager, "READY"), words.Word(lifecycle, "", "DEPLOYED", "STABLE")), obj):
		return words.Fine
	case rules.Text(obj.Object, words.At(state)...) != "":
		return words.Waiting
	case words.Says(words.OneOf(words.Word(manager, "ERROR"), words.Word(lifecycle, "FAILED")), obj):
		return words.Failing
	case words.Says(words.OneOf(words.Word(manager, "DEPLOYING", "DEPLOYED_NOT_READY", "READY"), words.Word(lifecycle, "UPGRADING", "DEPLOYED", "STABLE", "SUSPENDED")), obj):
		return words.Waiting
	default:
		return words.Failing
	}
}

// flinkSuspended is healthy where a job was suspended and is.
func flinkSuspended(obj kinds.Object) (bool, error) {
	return words.All(words.Word("spec.job.state", "suspended"), words.Word("status.lifecycleState", "SUSPENDED"))(obj)
}

// flinkWorkers adds up the replicas of task managers.
func flinkWorkers(status map[string]any, r rules.Reports) {
	rules.Put(status, rules.SumOf(r.Parts, "taskManager", "replicas"), "taskManager", "replicas")
	below := rules.Reports{Template: r.Template}
	for _, p := range r.Parts {
		below.Parts = append(below.Parts, rules.Part{Cluster: p.Cluster, Status: rules.Object(p.Status, "taskManager")})
	}
	rules.Same("labelSelector")(rules.Object(status, "taskManager"), below)
}

// flinkReplicas counts all pods, and has each need what the larger of them does.
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
		}
	}
	if need.NodeClaim == nil && need.ResourceRequest == nil {
		need = nil
	}
	return int32(min(n, math.MaxInt32)), need, nil
}

func flinkRoles(obj kinds.Object) words.Roster {
	r := words.Roster{Namespace: obj.GetNamespace()}
	workers, err := taskManagers(obj)
	if err != nil {
		r.Fail("taskmanager", err)
	}
	for _, role := range []struct {
		name, field string
		replicas    int64
	}{{"jobmanager", "jobManager", words.CountOr(1, obj.Object, "spec", "jobManager", "replicas")}, {"taskmanager", "taskManager", workers}} {
		need, err := flinkNeed(obj, role.field)
		if err != nil {
			r.Fail(role.name, err)
			continue
		}
		r.Add(role.name, role.replicas, need)
	}
	return r
}

// taskManagers returns how many there are: as many as are asked for, else as
// many as the job's parallelism has slots in; sessions start them as they need.
func taskManagers(obj kinds.Object) (int64, error) {
	if rules.Value(obj.Object, "spec", "taskManager", "replicas") != nil {
		return rules.Number(obj.Object, "spec", "taskManager", "replicas"), nil
	}
	config := rules.Object(obj.Object, "spec", "flinkConfiguration")
	slots, err := setting(config, "taskmanager.numberOfTaskSlots", 1)
	if err != nil {
		return 0, err
	}
	parallelism := rules.Number(obj.Object, "spec", "job", "parallelism")
	if parallelism == 0 && rules.Object(obj.Object, "spec", "job") != nil {
		if parallelism, err = setting(config, "parallelism.default", 1); err != nil {
			return 0, err
		}
	}
	return int64(math.Ceil(float64(parallelism) / float64(slots))), nil
}

// setting reads a number of the configuration, which is written as text.
func setting(config map[string]any, name string, none int64) (int64, error) {
	v := config[name]
	if v == nil {
		return none, nil
	}
	n := rules.Number(config, name)
	if text, ok := v.(string); ok {
		parsed, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return 0, fmt.Errorf("%s is no number: %.40q", name, text)
		}
		n = parsed
	}
	if n < 1 {
		return 0, fmt.Errorf("%s is less than one: %d", name, n)
	}
	return n, nil
}

// flinkNeed is what one pod of a role needs: what its pod template, or that of
// all roles, asks for beside the main container, and what the role's resource says.
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
	return words.Plus(obj.GetNamespace(), need, own), nil
}
