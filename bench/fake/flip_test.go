package fake_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFlip: a Deployment reports what it is set to, and a storm leaves it as
// it should be.
func TestFlip(t *testing.T) {
	m := start(t)
	obj := m.mustApply(web(managed, 3))
	m.awaitReady(3)
	if _, err := m.fleet.Flip(0, obj.GetNamespace()+"/"+obj.GetName(), 2); err != nil {
		t.Fatal(err)
	}
	m.awaitReady(2)
	flips, err := m.fleet.Storm(t.Context(), 1100*time.Millisecond)
	if err != nil || flips != 1 {
		t.Errorf("storm: %d flips, %v; want one", flips, err)
	}
	m.awaitReady(3)
}

// TestFlipOfNothing: what is not there reports nothing.
func TestFlipOfNothing(t *testing.T) {
	m := start(t)
	var got []string
	for _, member := range []int{0, 1, -1} {
		_, err := m.fleet.Flip(member, "shop/web", 1)
		got = append(got, err.Error())
	}
	if diff := cmp.Diff([]string{"shop/web is not in member 0", "there is no member 1", "there is no member -1"}, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if flips, err := m.fleet.Storm(t.Context(), 40*time.Millisecond); flips != 0 || err != nil {
		t.Errorf("storm over nothing: %d flips, %v", flips, err)
	}
}
