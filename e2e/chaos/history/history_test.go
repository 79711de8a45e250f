package history_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/e2e/chaos/history"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// good is a history in which all holds: an object is made, changed, deleted and made
// again, and another one has a write without an answer.
func good() history.History {
	const a, b = history.Object("shop/a"), history.Object("shop/b")
	stands := func() map[history.Object]int { return map[history.Object]int{a: 4, b: 2} }
	return history.History{
		Writes: []history.Write{
			{Object: a, Version: 1, Acknowledged: true, Begun: at(1)},
			{Object: a, Version: 2, Acknowledged: true, Begun: at(3)},
			{Object: a, Version: 3, Deleted: true, Acknowledged: true, Begun: at(5)},
			{Object: a, Version: 4, Acknowledged: true, Begun: at(7)},
			{Object: b, Version: 1, Acknowledged: true, Begun: at(1)},
			{Object: b, Version: 2, Begun: at(8)},
		},
		Sights: []history.Sight{
			{Cluster: "east", Object: a, Version: 1, UID: "1", At: at(2)},
			{Cluster: "east", Object: b, Version: 1, UID: "2", At: at(2)},
			{Cluster: "east", Object: a, Version: 2, UID: "1", At: at(4)},
			{Cluster: "east", Object: a, Version: 2, UID: "1", At: at(6), Deleted: true},
			{Cluster: "east", Object: a, Version: 4, UID: "3", At: at(8)},
			{Cluster: "east", Object: b, Version: 2, UID: "2", At: at(9)},
		},
		End: history.End{
			Hub: stands(), Placed: map[string]map[history.Object]int{"east": stands()}, Works: map[string]map[history.Object]int{"east": stands()}, Members: map[string]map[history.Object]int{"east": stands()},
			Replicas: map[history.Object]history.Replicas{a: {Template: 5, Sum: 5}},
		},
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		doctor func(*history.History)
		want   []history.Violation
	}{
		"all holds": {func(*history.History) {}, nil},
		"a write without an answer was not done": {func(h *history.History) {
			h.End.Hub["shop/b"] = 1
			h.End.Placed["east"]["shop/b"], h.End.Works["east"]["shop/b"], h.End.Members["east"]["shop/b"] = 1, 1, 1
			h.Sights = h.Sights[:5]
		}, nil},
		"a write that was acknowledged is lost": {func(h *history.History) {
			h.End.Hub["shop/a"] = 2
			h.End.Placed["east"]["shop/a"], h.End.Works["east"]["shop/a"], h.End.Members["east"]["shop/a"] = 2, 2, 2
		}, []history.Violation{{Invariant: "I1", Because: "shop/a stands at version 2, which is not what was last written: version 4"}}},
		"an object that was acknowledged is lost": {func(h *history.History) {
			delete(h.End.Hub, "shop/a")
			delete(h.End.Placed["east"], "shop/a")
			delete(h.End.Works["east"], "shop/a")
			delete(h.End.Members["east"], "shop/a")
		}, []history.Violation{{Invariant: "I1", Because: "shop/a stands at nothing, which is not what was last written: version 4"}}},
		"an object that nobody wrote": {func(h *history.History) {
			h.End.Hub["shop/c"] = 1
			h.End.Placed["east"]["shop/c"], h.End.Works["east"]["shop/c"], h.End.Members["east"]["shop/c"] = 1, 1, 1
		}, []history.Violation{{Invariant: "I1", Because: "shop/c is there, and nobody wrote it"}}},
		"an object goes from a member before anybody asks": {func(h *history.History) { h.Sights[3].At = at(4) },
			[]history.Violation{{Invariant: "I2", Because: "shop/a went from east at version 2 for the 1. time, and was deleted 0 times until then"}}},
		"an object goes twice for one deletion": {func(h *history.History) {
			h.Sights = append(h.Sights, history.Sight{Cluster: "east", Object: "shop/a", Version: 4, UID: "3", At: at(10), Deleted: true},
				history.Sight{Cluster: "east", Object: "shop/a", Version: 4, UID: "4", At: at(11)})
		}, []history.Violation{{Invariant: "I2", Because: "shop/a went from east at version 4 for the 2. time, and was deleted 1 times until then"}}},
		"an object is made anew": {func(h *history.History) { h.Sights[5].UID = "9" },
			[]history.Violation{{Invariant: "I2", Because: "shop/b was made anew in east at version 2"}}},
		"a member lacks an object": {func(h *history.History) { delete(h.End.Members["east"], "shop/a") },
			[]history.Violation{{Invariant: "I4", Because: "the member east: shop/a stands at nothing, and is to have version 4"}}},
		"a member keeps an object": {func(h *history.History) { h.End.Members["east"]["shop/old"] = 1 },
			[]history.Violation{{Invariant: "I4", Because: "the member east: shop/old is there, and not to be"}}},
		"an object is placed nowhere": {func(h *history.History) {
			delete(h.End.Placed["east"], "shop/a")
			delete(h.End.Works["east"], "shop/a")
			delete(h.End.Members["east"], "shop/a")
		}, []history.Violation{{Invariant: "I4", Because: "shop/a is placed nowhere"}}},
		"a Work is behind": {func(h *history.History) { h.End.Works["east"]["shop/a"] = 2 },
			[]history.Violation{{Invariant: "I4", Because: "the Works of east: shop/a stands at version 2, and is to have version 4"}}},
		"replicas are lost": {func(h *history.History) { h.End.Replicas["shop/a"] = history.Replicas{Template: 5, Sum: 4} },
			[]history.Violation{{Invariant: "I6", Because: "shop/a has 4 replicas in sum, and is to have 5"}}},
		"an older version comes back": {func(h *history.History) {
			h.Sights = append(h.Sights, history.Sight{Cluster: "east", Object: "shop/b", Version: 1, UID: "2", At: at(10)},
				history.Sight{Cluster: "east", Object: "shop/b", Version: 2, UID: "2", At: at(11)})
		}, []history.Violation{{Invariant: "I7", Because: "shop/b went back in east from version 2 to 1"}}},
		"a version that nobody wrote": {func(h *history.History) { h.Sights[0].At = at(0) },
			[]history.Violation{{Invariant: "I7", Because: "shop/a has version 1 in east, which nobody had written"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := good()
			tc.doctor(&h)
			if diff := cmp.Diff(tc.want, history.Check(h)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
