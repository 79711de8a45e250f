package customizations

import (
	"fmt"
	"maps"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// flink is the operator of Apache Flink.
func flink() kinds.Table {
	lifecycle := []string{"FAILED", "ROLLING_BACK", "ROLLED_BACK", "DELETING", rules.Others, "UPGRADING", "CREATED", "DEPLOYED", "SUSPENDED", "STABLE"}
	deployment := []string{"ERROR", rules.Others, "MISSING", "DEPLOYING", "DEPLOYED_NOT_READY", "READY"}
	job := []string{"FAILED", "FAILING", rules.Others, "RESTARTING", "CANCELLING", "CANCELED", "INITIALIZING", "RECONCILING", "CREATED",
		"SUSPENDED", "RUNNING", "FINISHED"}
	return kinds.Table{kind("flink.apache.org/v1beta1", "FlinkDeployment"): graded(kinds.Rules{
		Replicas:   flinkReplicas,
		Components: func(obj kinds.Object) (components, error) { r := flinkRoles(obj); return r.result() },
		// What was deployed last comes with the status as text: that is not
		// reported.
		Reflect: rules.ReflectTracked("jobStatus", "jobManagerDeploymentStatus", "lifecycleState", "taskManager", "error", "clusterInfo"),
		Aggregate: rules.Aggregate(rules.FromWorst("jobStatus", "jobStatus.state", "CREATED", job...),
			rules.Worst("jobManagerDeploymentStatus", "MISSING", deployment...),
			rules.Worst("lifecycleState", "CREATED", lifecycle...), flinkWorkers, rules.Quote("error"), rules.Alike("clusterInfo"), rules.Observe),
		Dependencies: needs(pods("spec.podTemplate.spec", "spec.jobManager.podTemplate.spec", "spec.taskManager.podTemplate.spec"),
			serviceAccounts("spec.serviceAccount")),
	}, flinkGrade)}
}

// flinkGrade goes by what the job says, once it says anything: the operator takes
// the job manager of one that has finished away, and has one that fails start again.
func flinkGrade(obj kinds.Object) grade {
	const state, manager, lifecycle = "status.jobStatus.state", "status.jobManagerDeploymentStatus", "status.lifecycleState"
	session := rules.Object(obj.Object, "spec", "job") == nil
	switch {
	case says(all(current, flinkSuspended), obj),
		says(all(current, word(state, "RUNNING", "FINISHED")), obj),
		session && says(all(current, word(manager, "READY"), word(lifecycle, "", "DEPLOYED", "STABLE")), obj):
		return fine
	case rules.Text(obj.Object, at(state)...) != "":
		return waiting
	case says(oneOf(word(manager, "ERROR"), word(lifecycle, "FAILED")), obj):
		return failing
	case says(oneOf(word(manager, "DEPLOYING", "DEPLOYED_NOT_READY", "READY"), word(lifecycle, "UPGRADING", "DEPLOYED", "STABLE", "SUSPENDED")), obj):
		return waiting
	default:
		return failing
	}
}

// flinkSuspended is healthy where a job was suspended and is.
func flinkSuspended(obj kinds.Object) (bool, error) {
	return all(word("spec.job.state", "suspended"), word("status.lifecycleState", "SUSPENDED"))(obj)
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
func flinkReplicas(obj kinds.Object) (int32, *needed, error) {
	r := flinkRoles(obj)
	if r.err != nil {
		return 0, nil, r.err
	}
	var n int64
	need := &needed{Namespace: obj.GetNamespace()}
	for _, part := range r.parts {
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

func flinkRoles(obj kinds.Object) roster {
	r := roster{namespace: obj.GetNamespace()}
	workers, err := taskManagers(obj)
	if err != nil {
		r.fail("taskmanager", err)
	}
	for _, role := range []struct {
		name, field string
		replicas    int64
	}{{"jobmanager", "jobManager", countOr(1, obj.Object, "spec", "jobManager", "replicas")}, {"taskmanager", "taskManager", workers}} {
		need, err := flinkNeed(obj, role.field)
		if err != nil {
			r.fail(role.name, err)
			continue
		}
		r.add(role.name, role.replicas, need)
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
func flinkNeed(obj kinds.Object, role string) (*needed, error) {
	template := rules.Object(obj.Object, "spec", role, "podTemplate", "spec")
	if template == nil {
		template = rules.Object(obj.Object, "spec", "podTemplate", "spec")
	}
	others := maps.Clone(template)
	if others != nil {
		others["containers"] = sidecars(template, "flink-main-container")
	}
	need, err := requirements(obj.GetNamespace(), others)
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
	return plus(obj.GetNamespace(), need, own), nil
}

// sidecars returns the containers of a pod spec but the one of a name.
func sidecars(podSpec map[string]any, main string) []any {
	out := []any{}
	for _, c := range rules.Objects(podSpec, "containers") {
		if rules.Text(c, "name") != main {
			out = append(out, c)
		}
	}
	return out
}

// plus adds resources to a need; nil for nothing at all.
func plus(namespace string, need *needed, more corev1.ResourceList) *needed {
	if len(more) == 0 {
		return need
	}
	if need == nil {
		need = &needed{Namespace: namespace}
	}
	if need.ResourceRequest == nil {
		need.ResourceRequest = corev1.ResourceList{}
	}
	for name, q := range more {
		sum := need.ResourceRequest[name]
		sum.Add(q)
		need.ResourceRequest[name] = sum
	}
	return need
}
