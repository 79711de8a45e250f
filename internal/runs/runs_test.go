package runs_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-io/flotilla/internal/runs"
)

func object(generation int64, deleting bool) client.Object {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: generation}}
	if deleting {
		obj.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return obj
}

func update(p predicate.Predicate, obj client.Object) bool {
	return p.Update(event.UpdateEvent{ObjectOld: obj, ObjectNew: obj})
}

func TestRuns(t *testing.T) {
	cases := map[string]struct {
		before, after func(p predicate.Predicate) bool // the run reads version 2
		want          bool
	}{
		"nothing happens":             {},
		"its status is written":       {after: func(p predicate.Predicate) bool { return update(p, object(2, false)) }},
		"an older version comes late": {before: func(p predicate.Predicate) bool { return update(p, object(1, false)) }, after: func(p predicate.Predicate) bool { return update(p, object(1, false)) }},
		"a new spec":                  {after: func(p predicate.Predicate) bool { return update(p, object(3, false)) }, want: true},
		"a new spec that the run has not read": {
			before: func(p predicate.Predicate) bool { return update(p, object(3, false)) }, want: true,
		},
		"what the run has read": {before: func(p predicate.Predicate) bool { return update(p, object(2, false)) }},
		"a deletion":            {after: func(p predicate.Predicate) bool { return update(p, object(2, true)) }, want: true},
		"it is gone": {
			after: func(p predicate.Predicate) bool { return p.Delete(event.DeleteEvent{Object: object(2, false)}) }, want: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := runs.New()
			ctx, run := all.Start(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"})
			passed := tc.before == nil || tc.before(all.Predicate())
			run.WorksOn(object(2, false))
			passed = passed && (tc.after == nil || tc.after(all.Predicate()))
			if got := runs.Superseded(ctx); got != tc.want {
				t.Errorf("superseded = %v, want %v", got, tc.want)
			}
			if !passed {
				t.Error("an event was kept from the loop")
			}
			run.End()
			if ctx.Err() == nil || runs.Superseded(ctx) != tc.want {
				t.Errorf("after its end: %v", ctx.Err())
			}
			if !update(all.Predicate(), object(9, true)) {
				t.Error("an event after the run was kept from the loop")
			}
		})
	}
}
