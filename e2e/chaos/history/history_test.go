package history_test

import (
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/e2e/chaos/history"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

const (
	a   = history.Object("ConfigMap shop/a")    // stays in east
	b   = history.Object("ConfigMap shop/b")    // stays in east; its last write has no answer
	web = history.Object("Deployment shop/web") // moves from east to west
)

// snapshot is web as it was seen at a second.
func snapshot(second int, east, west history.ClusterState) history.Snapshot {
	out := history.Snapshot{Object: web, Begun: at(second), At: at(second), ByCluster: map[string]history.ClusterState{}}
	for cluster, observed := range map[string]history.ClusterState{"east": east, "west": west} {
		if observed != (history.ClusterState{}) {
			out.ByCluster[cluster] = observed
		}
	}
	return out
}

func observed(version, wanted, ready int) history.ClusterState {
	return history.ClusterState{Version: version, Wanted: wanted, Ready: ready}
}

// good is a history in which all holds: an object is made, changed, deleted and made
// again, another one has a write without an answer, and a third one is scaled, moves,
// and is edited. Meanwhile another replica takes over.
func good() history.History {
	const second = time.Second
	copies := func() []history.Copy {
		return []history.Copy{
			{Cluster: "east", Object: a, ID: "id-a", Version: 4, Digest: "a4"},
			{Cluster: "east", Object: b, ID: "id-b", Version: 2, Digest: "b2"},
			{Cluster: "west", Object: web, ID: "id-web", Version: 3, Digest: "web3", Replicas: 4},
			{Cluster: "east", Object: "Namespace shop", ID: "id-shop"},
		}
	}
	return history.History{
		Writes: []history.Write{
			{Object: a, Version: 1, Digest: "a1", Acknowledged: true, Begun: at(1)},
			{Object: b, Version: 1, Digest: "b1", Acknowledged: true, Begun: at(1)},
			{Object: web, Version: 1, Digest: "web1", Replicas: 6, Acknowledged: true, Begun: at(1)},
			{Object: a, Version: 2, Digest: "a2", Acknowledged: true, Begun: at(3)},
			{Object: a, Version: 3, Deleted: true, Acknowledged: true, Begun: at(5)},
			{Object: a, Version: 4, Digest: "a4", Acknowledged: true, Begun: at(7)},
			{Object: b, Version: 2, Digest: "b2", Begun: at(8)},
			{Object: web, Version: 2, Digest: "web2", Replicas: 4, Acknowledged: true, Begun: at(20)},
			{Object: web, Version: 3, Digest: "web3", Replicas: 4, Acknowledged: true, Begun: at(30)},
		},
		Moves: []history.Move{
			{Policy: "stays", Version: 1, Clusters: []string{"east"}, Acknowledged: true, Begun: at(0)},
			{Policy: "roams", Version: 1, Clusters: []string{"east"}, Acknowledged: true, Begun: at(0)},
			{Policy: "roams", Version: 2, Clusters: []string{"west"}, Acknowledged: true, Begun: at(10)},
		},
		Policies: map[history.Object]string{a: "stays", b: "stays", web: "roams"},
		Observations: []history.Observation{
			{Cluster: "east", Object: a, Version: 1, UID: "1", At: at(2)},
			{Cluster: "east", Object: b, Version: 1, UID: "2", At: at(2)},
			{Cluster: "east", Object: web, Version: 1, UID: "4", At: at(2)},
			{Cluster: "east", Object: a, Version: 2, UID: "1", At: at(4)},
			{Cluster: "east", Object: a, Version: 2, UID: "1", At: at(6), Deleted: true},
			{Cluster: "east", Object: a, Version: 4, UID: "3", At: at(8)},
			{Cluster: "east", Object: b, Version: 2, UID: "2", At: at(9)},
			{Cluster: "west", Object: web, Version: 1, UID: "5", At: at(11)},
			{Cluster: "east", Object: web, Version: 1, UID: "4", At: at(13), Deleted: true},
			{Cluster: "west", Object: web, Version: 2, UID: "5", At: at(21)},
			{Cluster: "west", Object: web, Version: 3, UID: "5", At: at(31)},
		},
		Snapshots: []history.Snapshot{
			snapshot(3, observed(1, 6, 2), observed(0, 0, 0)),
			snapshot(4, observed(1, 6, 6), observed(0, 0, 0)),
			snapshot(12, observed(1, 6, 6), observed(1, 6, 3)),
			snapshot(14, observed(0, 0, 0), observed(1, 6, 6)),
			snapshot(22, observed(0, 0, 0), observed(2, 4, 4)),
			snapshot(32, observed(0, 0, 0), observed(3, 4, 5)),
		},
		Divisions: []history.Division{
			{Object: web, Replicas: 6, Clusters: map[string]int{"east": 6}},
			{Object: web, Replicas: 6, Clusters: map[string]int{"west": 6}},
			{Object: web, Replicas: 4, Clusters: map[string]int{"west": 4}},
		},
		Requests: []history.Request{
			{By: "loops a, start 1", Epoch: 10, Revision: 11, What: "PATCH one", Begun: at(1), Ended: at(2)},
			{By: "loops a, start 1", Epoch: 10, Revision: 14, What: "PATCH two", Begun: at(3), Ended: at(17)},
			{By: "loops b, start 1", Epoch: 20, Revision: 22, What: "PATCH three", Begun: at(15), Ended: at(16)},
			{By: "loops b, start 1", Epoch: 20, What: "DELETE four", Begun: at(17), Ended: at(18)},
		},
		End: history.End{
			Hub:      map[history.Object]history.Template{a: {Version: 4, Digest: "a4"}, b: {Version: 2, Digest: "b2"}, web: {Version: 3, Digest: "web3", Replicas: 4}},
			Policies: map[string]int{"stays": 1, "roams": 2},
			Placed:   map[history.Object]map[string]int{a: {"east": 0}, b: {"east": 0}, web: {"west": 4}},
			Works:    copies(), Members: copies(),
		},
		Still: history.Stretch{For: 60 * second, Revisions: 31, Leases: 31}, AtRest: 60 * second,
		Secrets: []string{"CANARY-1"},
		Texts:   []history.Text{{Where: "the log of the hub", Content: "all is well\n"}},
		Programs: []history.Program{
			{Name: "hub", Before: history.Use{Goroutines: 1000, Memory: 300 << 20}, After: history.Use{Goroutines: 1010, Memory: 500 << 20}, Garbage: 512 << 20},
			{Name: "agent", Before: history.Use{Goroutines: 100, Memory: 40 << 20}, After: history.Use{Goroutines: 90, Memory: 44 << 20}},
		},
	}
}

// without takes an object out of copies.
func without(copies []history.Copy, object history.Object) []history.Copy {
	return slices.DeleteFunc(copies, func(c history.Copy) bool { return c.Object == object })
}

// of returns an object's copy, to change it.
func of(copies []history.Copy, object history.Object) *history.Copy {
	return &copies[slices.IndexFunc(copies, func(c history.Copy) bool { return c.Object == object })]
}

// TestCheck doctors a history in which all holds.
func TestCheck(t *testing.T) {
	cases := map[string]struct {
		doctor func(*history.History)
		want   []history.Violation
	}{
		"all holds": {func(*history.History) {}, nil},
		"a write without an answer was not done": {func(h *history.History) {
			h.End.Hub[b] = history.Template{Version: 1, Digest: "b1"}
			for _, copies := range [][]history.Copy{h.End.Works, h.End.Members} {
				of(copies, b).Version, of(copies, b).Digest = 1, "b1"
			}
			h.Observations = slices.Delete(h.Observations, 6, 7)
		}, nil},

		"I1: a write that was acknowledged is lost": {func(h *history.History) {
			h.End.Hub[a] = history.Template{Version: 2, Digest: "a2"}
			for _, copies := range [][]history.Copy{h.End.Works, h.End.Members} {
				of(copies, a).Version, of(copies, a).Digest = 2, "a2"
			}
		}, []history.Violation{{Invariant: "I1", Because: "ConfigMap shop/a stands at version 2, which is not what was last written: version 4"}}},
		"I1: a part of a write is lost": {func(h *history.History) {
			h.End.Hub[a] = history.Template{Version: 4, Digest: "a2"}
			for _, copies := range [][]history.Copy{h.End.Works, h.End.Members} {
				of(copies, a).Digest = "a2"
			}
		}, []history.Violation{{Invariant: "I1", Because: "ConfigMap shop/a stands at version 4, which is not what was last written: version 4"}}},
		"I1: an object that was acknowledged is lost": {func(h *history.History) {
			delete(h.End.Hub, a)
			h.End.Works, h.End.Members = without(h.End.Works, a), without(h.End.Members, a)
		}, []history.Violation{{Invariant: "I1", Because: "ConfigMap shop/a stands at nothing, which is not what was last written: version 4"}}},
		"I1: a deletion that was acknowledged is lost": {func(h *history.History) {
			h.Writes = append(h.Writes, history.Write{Object: a, Version: 5, Deleted: true, Acknowledged: true, Begun: at(40)})
		}, []history.Violation{{Invariant: "I1", Because: "ConfigMap shop/a stands at version 4, which is not what was last written: a deletion"}}},
		"I1: an object that nobody wrote": {func(h *history.History) {
			h.Policies["ConfigMap shop/c"], h.End.Hub["ConfigMap shop/c"] = "stays", history.Template{Version: 1}
			h.End.Placed["ConfigMap shop/c"] = map[string]int{"east": 0}
			c := history.Copy{Cluster: "east", Object: "ConfigMap shop/c", ID: "id-c", Version: 1}
			h.End.Works, h.End.Members = append(h.End.Works, c), append(h.End.Members, c)
		}, []history.Violation{{Invariant: "I1", Because: "ConfigMap shop/c is there, and nobody wrote it"}}},
		"I1: a move is lost": {func(h *history.History) {
			h.End.Policies["roams"] = 1
			h.End.Placed[web] = map[string]int{"east": 4}
			of(h.End.Works, web).Cluster, of(h.End.Members, web).Cluster = "east", "east"
		}, []history.Violation{{Invariant: "I1", Because: "the policy roams stands at version 1, which is not what was last written"}}},

		"I2: an object goes from a member before anybody asks": {func(h *history.History) { h.Observations[4].At = at(4) },
			[]history.Violation{{Invariant: "I2", Because: "ConfigMap shop/a went from east at version 2: no user had deleted it, and policies had moved it away 0 times, for 1 removals"}}},
		"I2: an object goes for a deletion of before": {func(h *history.History) {
			h.Observations = append(h.Observations, history.Observation{Cluster: "east", Object: a, Version: 4, UID: "3", At: at(40), Deleted: true})
		}, []history.Violation{{Invariant: "I2", Because: "ConfigMap shop/a went from east at version 4: no user had deleted it, and policies had moved it away 0 times, for 1 removals"}}},
		"I2: an object is made anew": {func(h *history.History) { h.Observations[6].UID = "9" },
			[]history.Violation{{Invariant: "I2", Because: "ConfigMap shop/b was made anew in east at version 2"}}},
		"I2: an object goes twice for one move": {func(h *history.History) {
			h.Observations = slices.Insert(h.Observations, 9,
				history.Observation{Cluster: "east", Object: web, Version: 1, UID: "6", At: at(14)},
				history.Observation{Cluster: "east", Object: web, Version: 1, UID: "6", At: at(14), Deleted: true})
		}, []history.Violation{{Invariant: "I2", Because: "Deployment shop/web went from east at version 1: no user had deleted it, and policies had moved it away 1 times, for 2 removals"}}},
		"I2: an object goes from where its policy wants it": {func(h *history.History) { h.Observations[8].Cluster, h.Observations[8].UID = "west", "5" },
			[]history.Violation{{Invariant: "I2", Because: "Deployment shop/web went from west at version 1: no user had deleted it, and policies had moved it away 0 times, for 1 removals"}}},
		"I2: an object leaves for where it does not run": {func(h *history.History) { h.Snapshots[3].ByCluster["west"] = observed(1, 6, 0) }, []history.Violation{
			{Invariant: "I2", Because: "Deployment shop/web went from east at version 1 for a move, and ran nowhere else"},
			{Invariant: "I3", Because: "Deployment shop/web had 0 healthy replicas and is to have 6 at least, by the look of 12:00:14.000"},
		}},
		"I2: nobody looks where an object has gone": {func(h *history.History) { h.Snapshots = h.Snapshots[:3] },
			[]history.Violation{{Invariant: "I2", Because: "Deployment shop/web went from east at version 1 for a move, and nobody has looked where else it ran"}}},

		"I3: replicas are lost in between": {func(h *history.History) { h.Snapshots[5].ByCluster["west"] = observed(3, 4, 3) },
			[]history.Violation{{Invariant: "I3", Because: "Deployment shop/web had 3 healthy replicas and is to have 4 at least, by the look of 12:00:32.000"}}},
		"I3: a cluster is left before the next one has all replicas": {func(h *history.History) { h.Snapshots[3].ByCluster["west"] = observed(1, 6, 5) },
			[]history.Violation{{Invariant: "I3", Because: "Deployment shop/web had 5 healthy replicas and is to have 6 at least, by the look of 12:00:14.000"}}},
		"I3: a cluster runs fewer before its user says so": {func(h *history.History) {
			h.Snapshots = slices.Insert(h.Snapshots, 4, snapshot(18, history.ClusterState{}, observed(1, 4, 4)))
		}, []history.Violation{{Invariant: "I3", Because: "Deployment shop/web had 4 healthy replicas and is to have 6 at least, by the look of 12:00:18.000"}}},
		"I3: replicas are lost while a write is under way": {func(h *history.History) {
			h.Writes[7].Begun, h.Writes[8].Begun = at(3), at(3)
			h.Snapshots = slices.Insert(h.Snapshots, 2, snapshot(5, observed(1, 6, 3), history.ClusterState{}))
		}, []history.Violation{{Invariant: "I3", Because: "Deployment shop/web had 3 healthy replicas and is to have 4 at least, by the look of 12:00:05.000"}}},
		"I3: replicas are lost while a move is under way": {func(h *history.History) {
			h.Moves[2].Begun = at(3)
			h.Snapshots = slices.Insert(h.Snapshots, 2, snapshot(5, observed(1, 6, 5), history.ClusterState{}))
		}, []history.Violation{{Invariant: "I3", Because: "Deployment shop/web had 5 healthy replicas and is to have 6 at least, by the look of 12:00:05.000"}}},
		"a user deletes it while it runs": {func(h *history.History) {
			h.Writes = slices.Insert(h.Writes, 7, history.Write{Object: web, Version: 2, Deleted: true, Begun: at(14)})
			h.Writes[8].Version, h.Writes[9].Version = 3, 4
			h.Observations = append(h.Observations[:9:9], history.Observation{Cluster: "west", Object: web, Version: 3, UID: "6", At: at(21)}, history.Observation{Cluster: "west", Object: web, Version: 4, UID: "6", At: at(31)})
			h.Observations = slices.Insert(h.Observations, 9, history.Observation{Cluster: "west", Object: web, Version: 1, UID: "5", At: at(15), Deleted: true})
			h.Snapshots = append(h.Snapshots[:4:4], snapshot(15, history.ClusterState{}, history.ClusterState{}), snapshot(22, history.ClusterState{}, observed(3, 4, 4)), snapshot(32, history.ClusterState{}, observed(4, 4, 5)))
			h.End.Hub[web] = history.Template{Version: 4, Digest: "web3", Replicas: 4}
			of(h.End.Works, web).Version, of(h.End.Members, web).Version = 4, 4
		}, nil},
		"a cluster that stays runs fewer at once, and the next one is not there yet": {func(h *history.History) {
			h.Moves[2].Clusters = []string{"east", "west"}
			h.Observations = slices.Delete(h.Observations, 8, 9)
			h.Snapshots = []history.Snapshot{h.Snapshots[0], h.Snapshots[1], snapshot(12, observed(1, 3, 3), observed(1, 3, 0)), snapshot(32, observed(3, 2, 2), observed(3, 2, 2))}
			h.End.Placed[web] = map[string]int{"east": 2, "west": 2}
			for _, copies := range []*[]history.Copy{&h.End.Works, &h.End.Members} {
				of(*copies, web).Replicas = 2
				*copies = append(*copies, history.Copy{Cluster: "east", Object: web, ID: "id-web", Version: 3, Digest: "web3", Replicas: 2})
			}
		}, nil},
		"I3: it runs fewer than that": {func(h *history.History) {
			h.Moves[2].Clusters = []string{"east", "west"}
			h.End = history.End{}
			h.Writes, h.Moves = h.Writes[2:3], h.Moves[1:]
			h.Writes[0].Acknowledged, h.Moves[0].Acknowledged, h.Moves[1].Acknowledged = false, false, false
			h.End.Policies = map[string]int{"roams": 2}
			h.Observations = h.Observations[2:3]
			h.Snapshots = []history.Snapshot{h.Snapshots[0], h.Snapshots[1], snapshot(12, observed(1, 3, 2), observed(1, 3, 0))}
		}, []history.Violation{{Invariant: "I3", Because: "Deployment shop/web had 2 healthy replicas and is to have 3 at least, by the look of 12:00:12.000"}}},

		"I4: a member lacks an object": {func(h *history.History) { h.End.Members = without(h.End.Members, a) },
			[]history.Violation{{Invariant: "I4", Because: "the member east: ConfigMap shop/a is not there, and its Work is"}}},
		"I4: a member keeps an object": {func(h *history.History) {
			h.End.Members = append(h.End.Members, history.Copy{Cluster: "east", Object: "ConfigMap shop/old", ID: "id-old"})
		}, []history.Violation{{Invariant: "I4", Because: "the member east: ConfigMap shop/old is there, and no Work has it"}}},
		"I4: Works and members keep an object": {func(h *history.History) {
			h.Writes = append(h.Writes, history.Write{Object: b, Version: 3, Deleted: true, Acknowledged: true, Begun: at(40)})
			delete(h.End.Hub, b)
		}, []history.Violation{{Invariant: "I4", Because: "the Works of east: ConfigMap shop/b is there, and not to be"}}},
		"I4: an object is placed where its policy does not say": {func(h *history.History) { h.End.Placed[a] = map[string]int{"west": 0} },
			[]history.Violation{{Invariant: "I4", Because: "ConfigMap shop/a is placed in [west], and its policy says [east]"}}},
		"replicas that were divided while a cluster was away": {func(h *history.History) {
			h.Moves[2].Clusters = []string{"north", "west"}
			h.Absences = []history.Absence{{Cluster: "north", At: at(20)}}
		}, nil},
		"I4: a cluster is left out that was there when replicas were divided": {func(h *history.History) {
			h.Moves[2].Clusters = []string{"north", "west"}
			h.Absences = []history.Absence{{Cluster: "north", At: at(19)}, {Cluster: "west", At: at(25)}}
		}, []history.Violation{
			{Invariant: "I4", Because: "Deployment shop/web is placed in [west], and its policy says [north west]"},
			{Invariant: "I4", Because: "the Works of north: Deployment shop/web is not there, and is to be"},
		}},
		"I4: an object without replicas is left out of a cluster that was away": {func(h *history.History) {
			h.Moves[0].Clusters = []string{"east", "north"}
			h.Absences = []history.Absence{{Cluster: "north", At: at(30)}}
		}, []history.Violation{
			{Invariant: "I4", Because: "ConfigMap shop/a is placed in [east], and its policy says [east north]"},
			{Invariant: "I4", Because: "ConfigMap shop/b is placed in [east], and its policy says [east north]"},
			{Invariant: "I4", Because: "the Works of north: ConfigMap shop/a is not there, and is to be"},
			{Invariant: "I4", Because: "the Works of north: ConfigMap shop/b is not there, and is to be"},
		}},
		"I4: an object is nowhere": {func(h *history.History) {
			h.End.Works, h.End.Members = without(h.End.Works, a), without(h.End.Members, a)
		}, []history.Violation{{Invariant: "I4", Because: "the Works of east: ConfigMap shop/a is not there, and is to be"}}},
		"I4: a Work is behind": {func(h *history.History) {
			of(h.End.Works, a).Version, of(h.End.Works, a).Digest = 2, "a2"
			of(h.End.Members, a).Version, of(h.End.Members, a).Digest = 2, "a2"
		}, []history.Violation{{Invariant: "I4", Because: `the Works of east: ConfigMap shop/a is version 2 with 0 replicas, digest "a2", id "id-a", and is to be version 4 with 0 replicas, digest "a4"`}}},
		"I4: a member has another content": {func(h *history.History) { of(h.End.Members, a).Digest = "other" },
			[]history.Violation{{Invariant: "I4", Because: `the member east: ConfigMap shop/a is version 4 with 0 replicas, digest "other", id "id-a", and its Work says version 4 with 0 replicas, digest "a4", id "id-a"`}}},
		"I4: a member has the object of another Work": {func(h *history.History) { of(h.End.Members, "Namespace shop").ID = "other" },
			[]history.Violation{{Invariant: "I4", Because: `the member east: Namespace shop is version 0 with 0 replicas, digest "", id "other", and its Work says version 0 with 0 replicas, digest "", id "id-shop"`}}},
		"I4: two Works have an object": {func(h *history.History) { h.End.Works = append(h.End.Works, *of(h.End.Works, a)) },
			[]history.Violation{{Invariant: "I4", Because: "the Works of east: ConfigMap shop/a is there twice"}}},

		"I5: an old leader's write has a revision after the next one's epoch": {func(h *history.History) { h.Requests[1].Revision = 21 },
			[]history.Violation{{Invariant: "I5", Because: "loops a, start 1 wrote in epoch 10, which had ended with 20: PATCH two"}}},
		"the old leader had changed nothing": {func(h *history.History) {
			h.Requests = append(h.Requests, history.Request{By: "loops a, start 1", Epoch: 10, Revision: 22, What: "PATCH the same", Begun: at(16), Ended: at(18)})
		}, nil},
		"I5: an old leader removes something once the next one writes": {func(h *history.History) {
			h.Requests = append(h.Requests, history.Request{By: "loops a, start 1", Epoch: 10, What: "DELETE five", Begun: at(17), Ended: at(18)})
		}, []history.Violation{{Invariant: "I5", Because: "loops a, start 1 wrote in epoch 10, which had ended with 20: DELETE five"}}},
		"I5: two replicas write in one epoch": {func(h *history.History) { h.Requests[2].Epoch, h.Requests[3].Epoch = 10, 10 },
			[]history.Violation{
				{Invariant: "I5", Because: "loops a, start 1 and loops b, start 1 both wrote in epoch 10: DELETE four"},
				{Invariant: "I5", Because: "loops a, start 1 and loops b, start 1 both wrote in epoch 10: PATCH three"},
			}},
		"I5: a replica that was killed goes on in its epoch": {func(h *history.History) { h.Requests[3].By = "loops b, start 2" },
			[]history.Violation{{Invariant: "I5", Because: "loops b, start 1 and loops b, start 2 both wrote in epoch 20: DELETE four"}}},
		"I5: a replica writes without an epoch": {func(h *history.History) { h.Requests[0].Epoch = 0 },
			[]history.Violation{{Invariant: "I5", Because: "loops a, start 1 wrote without an epoch: PATCH one"}}},

		"I6: replicas are lost": {func(h *history.History) {
			for _, copies := range [][]history.Copy{h.End.Works, h.End.Members} {
				of(copies, web).Replicas = 3
			}
			h.End.Placed[web]["west"] = 3
		}, []history.Violation{
			{Invariant: "I6", Because: "Deployment shop/web has 3 replicas in sum, and is to have 4"},
			{Invariant: "I6", Because: "Deployment shop/web is divided into 3 replicas in sum, and is to have 4"},
		}},
		"I6: replicas were too many for a while": {func(h *history.History) { h.Divisions[1].Clusters["east"] = 1 },
			[]history.Violation{{Invariant: "I6", Because: "Deployment shop/web was divided into 7 replicas in sum, map[east:1 west:6], and had 6"}}},

		"I7: an older version comes back": {func(h *history.History) {
			h.Observations = append(h.Observations, history.Observation{Cluster: "east", Object: b, Version: 1, UID: "2", At: at(40)},
				history.Observation{Cluster: "east", Object: b, Version: 2, UID: "2", At: at(41)})
		}, []history.Violation{{Invariant: "I7", Because: "ConfigMap shop/b went back in east from version 2 to 1"}}},
		"I7: an object comes back after its deletion": {func(h *history.History) {
			h.Observations[5] = history.Observation{Cluster: "east", Object: a, Version: 2, UID: "3", At: at(8)}
			h.Observations = append(h.Observations, history.Observation{Cluster: "east", Object: a, Version: 4, UID: "3", At: at(9)})
		}, []history.Violation{{Invariant: "I7", Because: "ConfigMap shop/a came back in east at version 2"}}},
		"I7: a version that nobody wrote": {func(h *history.History) { h.Observations[0].At = at(0) },
			[]history.Violation{{Invariant: "I7", Because: "ConfigMap shop/a has version 1 in east, which nobody had written"}}},

		"I8: something is written at rest": {func(h *history.History) { h.Still.Revisions++ },
			[]history.Violation{{Invariant: "I8", Because: "the store has 32 new revisions at rest, of which leases are 31"}}},
		"I8: it rests too short": {func(h *history.History) { h.Still.For = 59 * time.Second },
			[]history.Violation{{Invariant: "I8", Because: "nobody wrote for 59s, and nobody is to for 1m0s"}}},
		"I8: something is written in a member": {func(h *history.History) { h.Still.Changed = []string{"the member east: ConfigMap shop/a"} },
			[]history.Violation{{Invariant: "I8", Because: "the member east: ConfigMap shop/a was changed at rest"}}},

		"I9: a log shows a secret": {func(h *history.History) { h.Texts[0].Content += "token CANARY-1 refused" },
			[]history.Violation{{Invariant: "I9", Because: "the log of the hub shows a secret"}}},

		"a folder has the secrets that belong there": {func(h *history.History) {
			h.Texts = append(h.Texts, history.Text{Where: "the folder of the agent", Content: "data: CANARY-1-now", May: []string{"CANARY-1-now"}})
		}, nil},
		"I9: a folder keeps a secret that is another one by now": {func(h *history.History) {
			h.Texts = append(h.Texts, history.Text{Where: "the folder of the agent", Content: "data: CANARY-1-now, was: CANARY-1-before", May: []string{"CANARY-1-now"}})
		}, []history.Violation{{Invariant: "I9", Because: "the folder of the agent shows a secret"}}},

		"I10: goroutines stay": {func(h *history.History) { h.Programs[1].After.Goroutines = 141 },
			[]history.Violation{{Invariant: "I10", Because: "agent has 141 goroutines at rest, and had 100"}}},
		"I10: memory stays": {func(h *history.History) { h.Programs[1].After.Memory = 115 << 20 },
			[]history.Violation{{Invariant: "I10", Because: "agent has 115 MiB at rest, and had 40"}}},
		"I10: more than what is kept on purpose": {func(h *history.History) { h.Programs[0].After.Memory = 1000 << 20 },
			[]history.Violation{{Invariant: "I10", Because: "hub has 1000 MiB at rest, and had 300"}}},
		"I10: nobody looks": {func(h *history.History) { h.Programs[1].After = history.Use{} },
			[]history.Violation{{Invariant: "I10", Because: "nobody has looked what agent needs"}}},
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

// TestJudged counts the looks at which something had to be there.
func TestJudged(t *testing.T) {
	h := good()
	if diff := cmp.Diff([]int{2, 3, 4, 5}, history.Judged(h)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	other := snapshot(2, observed(1, 1, 1), history.ClusterState{})
	other.Object = a
	h.Snapshots = append([]history.Snapshot{other}, h.Snapshots...)
	if diff := cmp.Diff([]int{3, 4, 5, 6}, history.Judged(h)); diff != "" {
		t.Errorf("with a look at another object (-want +got):\n%s", diff)
	}
}

// TestSecretsInBase64 finds them wherever they stand in what is encoded.
func TestSecretsInBase64(t *testing.T) {
	for _, around := range []string{"", "a", "ab", "abc", "abcd"} {
		h := good()
		h.Texts[0].Content += base64.StdEncoding.EncodeToString([]byte(around + "CANARY-1" + around))
		want := []history.Violation{{Invariant: "I9", Because: "the log of the hub shows a secret"}}
		if diff := cmp.Diff(want, history.Check(h)); diff != "" {
			t.Errorf("%q around (-want +got):\n%s", around, diff)
		}
	}
}

// TestAtRest is about the end alone.
func TestAtRest(t *testing.T) {
	h := good()
	if got := history.AtRest(h); len(got) > 0 {
		t.Errorf("all is at rest: %v", got)
	}
	delete(h.End.Hub, a)
	h.End.Works, h.End.Members = without(h.End.Works, a), without(h.End.Members, a)
	want := []history.Violation{{Invariant: "I1", Because: "ConfigMap shop/a stands at nothing, which is not what was last written: version 4"}}
	if diff := cmp.Diff(want, history.AtRest(h)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
