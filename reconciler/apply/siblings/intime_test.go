package siblings

import (
	"context"
	"errors"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
)

// TestASlowSiblingIsGivenUp: a sibling that takes longer than it may is not built for each of the others again, until it is changed or a
// while is over. Who asks keeps its own time.
func TestASlowSiblingIsGivenUp(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	builds := 0
	build := newBounded(func(ctx context.Context, _ *kustomizev1.Kustomization, _ Artifact) (Wants, error) {
		builds++
		<-ctx.Done()
		return Wants{}, ctx.Err()
	}, clock, time.Millisecond).wants
	slow := func(generation int64) *kustomizev1.Kustomization {
		return &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "many", UID: "1", Generation: generation}}
	}
	const text = "Kustomization team/many takes longer than 1ms to be built"
	steps := []struct {
		what       string
		after      time.Duration
		generation int64
		digest     string
		builds     int
	}{
		{"it is built", 0, 1, "a", 1},
		{"it is given up", time.Minute, 1, "a", 1},
		{"it is changed", time.Minute, 2, "a", 2},
		{"there is another artifact", time.Minute, 2, "b", 3},
		{"a while is over", time.Hour, 2, "b", 4},
	}
	for _, step := range steps {
		clock.SetTime(clock.Now().Add(step.after))
		_, err := build(t.Context(), slow(step.generation), Artifact{Digest: step.digest})
		if diff := cmp.Diff([]any{text, step.builds}, []any{err.Error(), builds}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := build(over, slow(3), Artifact{Digest: "b"}); !errors.Is(err, context.Canceled) {
		t.Errorf("asked by one that is over: %v", err)
	}
	if _, err := build(t.Context(), slow(3), Artifact{Digest: "b"}); err.Error() != text || builds != 6 {
		t.Errorf("asked again: %v, built %d times", err, builds)
	}
}
