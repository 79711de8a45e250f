package life

import (
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// causes distinguishes what a move takes from what the new copy reports as it starts. Both are counted by writes of templates,
// bindings, Works and Events. It is safe for use by several goroutines.
//
// A move is over when the binding's status has for the first time that the new cluster applied it. What that cluster
// reports from then on is what any new copy reports, moved or not: it is not healthy yet, it is. A copy that is healthy
// when it is first reported has none of these writes. What is neither counts for the move.
type causes struct {
	to string // where everything is moved to

	mu            sync.Mutex
	moves, starts int
	// reported are the templates, and the Works and bindings of which the new cluster's report is written, by kind and
	// key, with all but their statuses.
	reported map[string]string
}

// newCauses counts from when there are these templates.
func newCauses(to string, templates []appsv1.Deployment) *causes {
	c := &causes{to: to, reported: map[string]string{}}
	for i := range templates {
		d := &templates[i]
		c.reported["template "+client.ObjectKeyFromObject(d).String()] = apart(d)
	}
	return c
}

// lists are what it counts the writes of.
func (c *causes) lists(namespace string) map[client.ObjectList][]client.ListOption {
	in := []client.ListOption{client.InNamespace(namespace)}
	return map[client.ObjectList][]client.ListOption{
		&appsv1.DeploymentList{}:            in,
		&corev1.EventList{}:                 nil,
		&workv1alpha1.WorkList{}:            nil,
		&workv1alpha2.ResourceBindingList{}: in,
	}
}

// see counts a write.
func (c *causes) see(e watch.Event) {
	o, is := e.Object.(client.Object)
	if event, of := o.(*corev1.Event); !is || of && event.InvolvedObject.Kind == "Cluster" {
		return // that one is lost is reported once, however many leave it
	}
	key, reports := client.ObjectKeyFromObject(o).String(), false
	switch o := o.(type) {
	case *appsv1.Deployment: // of a copy that is healthy at first the total is what it was
		key, reports = "template "+key, true
	case *workv1alpha1.Work:
		key, reports = "work "+key, len(o.Status.Conditions) > 0
	case *workv1alpha2.ResourceBinding:
		key, reports = "binding "+key, slices.ContainsFunc(o.Status.AggregatedStatus, func(i workv1alpha2.AggregatedStatusItem) bool {
			return i.ClusterName == c.to && i.Applied
		})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, known := c.reported[key]; known && e.Type == watch.Modified && before == apart(o) {
		c.starts++
	} else {
		c.moves++
	}
	if reports {
		c.reported[key] = apart(o)
	}
}

// apart is all of an object but its status, as far as a version shows it.
func apart(o client.Object) string {
	return fmt.Sprint(o.GetUID(), o.GetGeneration(), o.GetLabels(), o.GetAnnotations(), o.GetFinalizers(), o.GetDeletionTimestamp())
}

// written returns how many writes the moves took, and how many the copies as they started.
func (c *causes) written() (moves, starts int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moves, c.starts
}
