package loop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

var errBoom = errors.New("boom")

func TestRun(t *testing.T) {
	step := func(name string, next loop.Next, err error) loop.Phase[[]string] {
		return func(_ context.Context, s *[]string) (loop.Next, error) {
			*s = append(*s, name)
			return next, err
		}
	}
	cases := map[string]struct {
		phases   []loop.Phase[[]string]
		wantRan  []string
		wantNext loop.Next
		wantErr  error
	}{
		"runs every phase and keeps the soonest timer": {
			phases:   []loop.Phase[[]string]{step("a", loop.Next{After: time.Minute}, nil), step("b", loop.Next{After: time.Second}, nil), step("c", loop.Next{}, nil)},
			wantRan:  []string{"a", "b", "c"},
			wantNext: loop.Next{After: time.Second},
		},
		"stops where a phase is done": {
			phases:   []loop.Phase[[]string]{step("a", loop.Next{Done: true}, nil), step("b", loop.Next{}, nil)},
			wantRan:  []string{"a"},
			wantNext: loop.Next{Done: true},
		},
		"stops at the first error but keeps timers set before it": {
			phases:   []loop.Phase[[]string]{step("a", loop.Next{After: time.Minute}, nil), step("b", loop.Next{}, errBoom), step("c", loop.Next{}, nil)},
			wantRan:  []string{"a", "b"},
			wantNext: loop.Next{After: time.Minute},
			wantErr:  errBoom,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var ran []string
			next, err := loop.Run(t.Context(), &ran, tc.phases...)
			if diff := cmp.Diff(tc.wantErr, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantRan, ran); diff != "" {
				t.Errorf("phases that ran (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantNext, next); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResult(t *testing.T) {
	cases := map[string]struct {
		next    loop.Next
		err     error
		want    reconcile.Result
		wantErr error
	}{
		"success keeps the timer":                    {next: loop.Next{After: time.Minute}, want: reconcile.Result{RequeueAfter: time.Minute}},
		"a stalled error sets no timer":              {next: loop.Next{After: time.Minute}, err: fmt.Errorf("read: %w", loop.Stalled("BadInput", errBoom))},
		"a waiting error sets its own timer":         {err: loop.Waiting("NotReady", time.Second, errBoom), want: reconcile.Result{RequeueAfter: time.Second}},
		"a fault with a reason backs off":            {err: loop.Retry("Fetch", errBoom), wantErr: errBoom},
		"an unclassified error is one that may pass": {err: errBoom, wantErr: errBoom},
		"a lease that has ended is waited for":       {err: loop.Stalled("Apply", fmt.Errorf("apply: %w", tenure.ErrOver)), want: reconcile.Result{RequeueAfter: 15 * time.Second}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := loop.Result(tc.next, tc.err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if !errors.Is(err, tc.wantErr) {
				t.Errorf("error = %v, want %v", err, tc.wantErr)
			}
		})
	}
}
