package life

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestCauses: what a move takes ends with the first status that has the new cluster's report.
func TestCauses(t *testing.T) {
	template := func(generation int64) client.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: generation}}
	}
	work := func(reported bool) client.Object {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		if reported {
			w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied}}
		}
		return w
	}
	binding := func(record, applied string) client.Object {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"record": record}}}
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: applied, Applied: true}, {ClusterName: "new"}}
		return b
	}
	type write struct {
		kind watch.EventType
		of   client.Object
	}
	placed, made, first, shown := write{watch.Modified, binding("1", "old")}, write{watch.Added, work(false)}, write{watch.Modified, work(true)}, write{watch.Modified, binding("1", "new")}
	for name, tc := range map[string]struct {
		writes        []write
		moves, starts int
	}{
		"a copy that is healthy at first":          {[]write{placed, made, first, shown}, 4, 0},
		"one that becomes healthy later":           {[]write{placed, made, first, shown, {watch.Modified, template(1)}, first, shown, {watch.Modified, template(1)}}, 4, 4},
		"one that is healthy before it is told of": {[]write{placed, made, first, first, shown}, 4, 1},
		"a binding that says first that it waits":  {[]write{placed, made, placed, first, shown}, 5, 0},
		"an old copy that is let go of":            {[]write{placed, made, first, shown, {watch.Modified, binding("2", "new")}, {watch.Deleted, work(true)}}, 6, 0},
		"a template that is edited":                {[]write{{watch.Modified, template(2)}}, 1, 0},
		"an Event":                                 {[]write{{watch.Added, &corev1.Event{}}}, 1, 0},
		"an Event about a cluster":                 {[]write{{watch.Added, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Cluster"}}}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCauses("new", []appsv1.Deployment{*template(1).(*appsv1.Deployment)})
			for _, w := range tc.writes {
				c.see(watch.Event{Type: w.kind, Object: w.of})
			}
			if moves, starts := c.written(); moves != tc.moves || starts != tc.starts {
				t.Errorf("%d writes of the move and %d of the copy's start, want %d and %d", moves, starts, tc.moves, tc.starts)
			}
		})
	}
}
