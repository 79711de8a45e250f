package fake

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Flip has a Deployment report that so many of its replicas are ready, and
// returns when it did. It is false where there is no such Deployment.
func (m *Member) Flip(namespace, name string, ready int64) (time.Time, bool) {
	at := place{resource: "deployments", namespace: namespace, name: name}
	if _, ok := m.store.get(at); !ok {
		return time.Time{}, false
	}
	m.store.report(at, func(object map[string]any) map[string]any { return withReady(object, ready) })
	return time.Now(), true
}

// withReady returns the status of an object so many of whose replicas are ready.
func withReady(object map[string]any, ready int64) map[string]any {
	status := running(object)
	status["readyReplicas"], status["availableReplicas"] = ready, ready
	if all, _ := status["replicas"].(int64); ready < all {
		status["unavailableReplicas"] = all - ready
		status["conditions"] = []any{map[string]any{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"}}
	}
	return status
}

// wanted returns how many replicas a Deployment asks for.
func wanted(object map[string]any) int64 {
	n, found, err := unstructured.NestedInt64(object, "spec", "replicas")
	if !found || err != nil {
		return 1
	}
	return n
}

// Flip is Member's, for the member at the index and namespace/name.
func (f *Fleet) Flip(member int, object string, ready int64) (time.Time, error) {
	namespace, name, _ := strings.Cut(object, "/")
	if member < 0 || member >= len(f.members) {
		return time.Time{}, fmt.Errorf("there is no member %d", member)
	}
	at, ok := f.members[member].Flip(namespace, name, ready)
	if !ok {
		return time.Time{}, fmt.Errorf("%s is not in member %d", object, member)
	}
	return at, nil
}

// slice is how long one slice of a storm is; all Deployments of all members are
// spread over the slices of a second.
const slice = 20 * time.Millisecond

// Storm has each Deployment of each member report one replica less than it
// wants, and all of them again, by turns, once a second, until the time is up;
// in the end all report all of them. It returns how many reports there were,
// the last ones not counted.
func (f *Fleet) Storm(ctx context.Context, lasts time.Duration) (int, error) {
	type target struct {
		member *Member
		at     place
	}
	var all []target
	for _, m := range f.members {
		for _, at := range m.deployments() {
			all = append(all, target{m, at})
		}
	}
	flip := func(t target, less int64) {
		t.member.store.report(t.at, func(object map[string]any) map[string]any { return withReady(object, wanted(object)-less) })
	}
	ticks := time.NewTicker(slice)
	defer ticks.Stop()
	each := int(time.Second / slice)
	flips := 0
	for i := range int(lasts / slice) {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return flips, ctx.Err()
		}
		from, to := len(all)*(i%each)/each, len(all)*(i%each+1)/each
		for _, t := range all[from:to] {
			flip(t, int64(i/each+1)%2)
			flips++
		}
	}
	for _, t := range all {
		flip(t, 0)
	}
	return flips, nil
}

// deployments returns where the member's Deployments are, sorted.
func (m *Member) deployments() []place {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	var out []place
	for at := range m.store.objects {
		if at.resource == "deployments" {
			out = append(out, at)
		}
	}
	slices.SortFunc(out, func(a, b place) int { return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name) })
	return out
}
