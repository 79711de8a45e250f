package native

import (
	"cmp"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

type items = []workv1alpha2.AggregatedStatusItem

// aggregateTracked sums the named counts. Every count is written, zeros too,
// so that a merge patch made of the result clears what has gone.
func aggregateTracked(counts ...string) func(kinds.Object, items) (map[string]any, error) {
	return func(template kinds.Object, items items) (map[string]any, error) {
		ps, err := parts(items)
		if err != nil {
			return nil, err
		}
		status := statusOf(template)
		for _, name := range counts {
			var sum int64
			for _, p := range ps {
				sum += number(p.status, name)
			}
			status[name] = sum
		}
		if template.GetGeneration() > 0 && observed(template, ps) {
			status[fieldObservedGeneration] = template.GetGeneration()
		}
		return status, nil
	}
}

// observed says whether every cluster reports about the template's latest
// spec.
func observed(template kinds.Object, ps []part) bool {
	for _, p := range ps {
		if p.status == nil || number(p.status, fieldObservedGeneration) < number(p.status, fieldGeneration) ||
			number(p.status, fieldTemplateGeneration) < template.GetGeneration() {
			return false
		}
	}
	return len(ps) > 0
}

func aggregateBudget(template kinds.Object, items items) (map[string]any, error) {
	status, err := aggregateTracked("disruptionsAllowed", "expectedPods", "desiredHealthy", "currentHealthy")(template, items)
	if err != nil {
		return nil, err
	}
	ps, err := parts(items)
	if err != nil {
		return nil, err
	}
	disrupted := map[string]any{}
	for _, p := range ps {
		for pod, at := range object(p.status, "disruptedPods") {
			disrupted[p.cluster+"/"+pod] = at
		}
	}
	delete(status, "disruptedPods")
	if len(disrupted) > 0 {
		status["disruptedPods"] = disrupted
	}
	return status, nil
}

// aggregateService collects the addresses of load balancers; other services
// have no status.
func aggregateService(template kinds.Object, items items) (map[string]any, error) {
	if text(template.Object, "spec", "type") != string(corev1.ServiceTypeLoadBalancer) {
		return statusOf(template), nil
	}
	return aggregateAddresses(template, items)
}

func aggregateAddresses(template kinds.Object, items items) (map[string]any, error) {
	ps, err := parts(items)
	if err != nil {
		return nil, err
	}
	var all []any
	for _, p := range ps {
		all = append(all, list(p.status, "loadBalancer", "ingress")...)
	}
	status := statusOf(template)
	if len(all) == 0 && value(status, "loadBalancer", "ingress") == nil {
		return status, nil
	}
	status["loadBalancer"] = map[string]any{"ingress": distinct(all)}
	return status, nil
}

// distinct returns the values sorted by their text, each once; never nil.
func distinct(values []any) []any {
	type entry struct {
		value any
		text  string
	}
	entries := make([]entry, 0, len(values))
	for _, v := range values {
		data, err := json.Marshal(v)
		if err != nil {
			continue // it was decoded from JSON
		}
		entries = append(entries, entry{v, string(data)})
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.text, b.text) })
	entries = slices.CompactFunc(entries, func(a, b entry) bool { return a.text == b.text })
	out := make([]any, len(entries))
	for i := range entries {
		out[i] = entries[i].value
	}
	return out
}

func aggregateCronJob(template kinds.Object, items items) (map[string]any, error) {
	ps, err := parts(items)
	if err != nil {
		return nil, err
	}
	status := statusOf(template)
	active := []any{}
	for _, p := range ps {
		active = append(active, list(p.status, "active")...)
		for _, name := range []string{"lastScheduleTime", "lastSuccessfulTime"} {
			// Times are in RFC 3339 and UTC, so their texts sort as they do.
			if at := text(p.status, name); at > text(status, name) {
				status[name] = at
			}
		}
	}
	if len(active) > 0 || status["active"] != nil {
		status["active"] = active
	}
	return status, nil
}

// firstPhase returns the first of the words that any cluster reports as its phase;
// a cluster that reports none counts as missing. Empty where no word occurs.
func firstPhase(ps []part, missing string, words ...string) string {
	seen := map[string]bool{}
	for _, p := range ps {
		phase := text(p.status, "phase")
		if phase == "" {
			phase = missing
		}
		seen[phase] = true
	}
	for _, w := range words {
		if seen[w] {
			return w
		}
	}
	return ""
}

func aggregatePod(template kinds.Object, items items) (map[string]any, error) {
	ps, err := parts(items)
	if err != nil {
		return nil, err
	}
	status := statusOf(template)
	setPhase(status, firstPhase(ps, string(corev1.PodPending), string(corev1.PodFailed), string(corev1.PodPending),
		string(corev1.PodRunning), string(corev1.PodSucceeded)))
	containers := []any{}
	for _, p := range ps {
		for _, entry := range list(p.status, "containerStatuses") {
			c, ok := entry.(map[string]any)
			if !ok {
				continue
			}
			containers = append(containers, containerStatus(c, p.cluster, len(ps) > 1))
		}
	}
	if len(containers) > 0 || status["containerStatuses"] != nil {
		status["containerStatuses"] = containers
	}
	return status, nil
}

// containerStatus reports whether a container is ready and in which state; its
// name says the cluster where there are several.
func containerStatus(c map[string]any, cluster string, several bool) map[string]any {
	name := text(c, "name")
	if several {
		name = cluster + "/" + name
	}
	ready, _ := c["ready"].(bool)
	out := map[string]any{"name": name, "ready": ready, "image": "", "imageID": "", "restartCount": int64(0)}
	if state := object(c, "state"); state != nil {
		out["state"] = state
	}
	return out
}

func setPhase(status map[string]any, phase string) {
	if phase != "" {
		status["phase"] = phase
	}
}

func aggregatePV(template kinds.Object, items items) (map[string]any, error) {
	ps, err := parts(items)
	if err != nil {
		return nil, err
	}
	status := statusOf(template)
	setPhase(status, firstPhase(ps, string(corev1.VolumePending), string(corev1.VolumeFailed), string(corev1.VolumePending),
		string(corev1.VolumeAvailable), string(corev1.VolumeBound), string(corev1.VolumeReleased)))
	return status, nil
}

// aggregatePVC says that a claim is lost if it is anywhere, and bound only if
// it is everywhere.
func aggregatePVC(template kinds.Object, items items) (map[string]any, error) {
	ps, err := parts(items)
	if err != nil {
		return nil, err
	}
	status := statusOf(template)
	setPhase(status, firstPhase(ps, string(corev1.ClaimPending), string(corev1.ClaimLost), string(corev1.ClaimPending),
		string(corev1.ClaimBound)))
	return status, nil
}
