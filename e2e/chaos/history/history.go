package history

import (
	"slices"
	"time"
)

// Object names an object by its kind, namespace and name.
type Object string

// Write is what a user asked the control plane for. The versions of an object grow
// with each write, also over its deletion, and one user writes an object, one write
// after the other.
type Write struct {
	Object  Object
	Version int
	// Digest is that of what the user wrote, but for its replicas.
	Digest string
	// Replicas are how many a user wants in sum; 0 for what has none.
	Replicas int
	// Deleted says that the object was to go.
	Deleted bool
	// Acknowledged says that the control plane accepted the write. Of other writes nobody knows
	// whether they were done.
	Acknowledged bool
	// Begun is when the request was sent.
	Begun time.Time
}

// Move is a write of a policy, which says where the objects run that it is for. As
// with objects, versions grow, and one user writes a policy.
type Move struct {
	Policy       string
	Version      int
	Clusters     []string
	Acknowledged bool
	Begun        time.Time
}

// Observation is what a member showed of an object.
type Observation struct {
	Cluster string
	Object  Object
	Version int
	// UID is the member's: another one is another object.
	UID string
	// Deleted says that it went. The version is the last one then.
	Deleted bool
	At      time.Time
}

// Snapshot is what all members had of an object at one moment, which lies between
// Begun and At.
type Snapshot struct {
	Object    Object
	Begun, At time.Time
	// ByCluster is what each cluster has of it; those that have nothing are left out.
	ByCluster map[string]ClusterState
}

// ClusterState is what a cluster has of an object.
type ClusterState struct {
	Version int
	// Wanted are the replicas that the cluster was asked to run, and Ready those that
	// are ready. Of an object without replicas both are 1.
	Wanted, Ready int
}

// Division is how the replicas of an object were divided at one moment: those of the
// object as they were then, and those of each cluster.
type Division struct {
	Object   Object
	Replicas int
	Clusters map[string]int
}

// Absence is a moment at which a cluster was not to be placed in, or the one at which it
// came back.
type Absence struct {
	Cluster string
	At      time.Time
}

// Request is a write of loops to the control plane that was answered with yes.
type Request struct {
	// By is the replica that sent it, of which each start is another one.
	By string
	// Epoch is what it carried; 0 if it had none.
	Epoch int64
	// Revision is that of the object in the answer; 0 if the answer has none.
	Revision int64
	// What identifies the request.
	What string
	// Begun is when it arrived, and Ended when its answer left.
	Begun, Ended time.Time
}

// Stretch is a time at the end in which nobody wrote.
type Stretch struct {
	For time.Duration
	// Revisions are how many the store has counted meanwhile, and Leases how many of
	// them were those of leases.
	Revisions, Leases int64
	// Changed are the members' objects that are others than at its beginning.
	Changed []string
}

// Text is something that people read, such as a log, or a file.
type Text struct {
	Where, Content string
	// May are the secrets that belong there, as they stand there, whole.
	May []string
}

// Use is what a program needs at rest.
type Use struct {
	Goroutines int
	// Memory is what the kernel keeps for the program alone. Bytes.
	Memory int64
}

// Program is what became of a program's use of its machine.
type Program struct {
	Name          string
	Before, After Use
	// Garbage is how much a program keeps on purpose before it collects. Bytes.
	Garbage int64
}

// History is all that happened, each list in the order of its times.
type History struct {
	Writes []Write
	Moves  []Move
	// Policies are the names of those that place the objects.
	Policies     map[Object]string
	Observations []Observation
	Snapshots    []Snapshot
	Divisions    []Division
	Absences     []Absence
	Requests     []Request
	// End is how all of it stands once the fleet has come to rest.
	End End
	// Still is the last time in which nobody wrote, and AtRest how long it has to be.
	Still  Stretch
	AtRest time.Duration
	// Secrets are what must not stand in any of the texts.
	Secrets  []string
	Texts    []Text
	Programs []Program
}

// End is the state of a fleet at rest.
type End struct {
	// Hub has the objects that users write, and Policies the versions of policies.
	Hub      map[Object]Template
	Policies map[string]int
	// Placed is where the control plane has decided that each object runs, with the
	// replicas there.
	Placed map[Object]map[string]int
	// Works and Members are what is to be in the clusters, and what is there that is
	// managed, also of what no user wrote.
	Works, Members []Copy
}

// Template is an object on the control plane.
type Template struct {
	Version, Replicas int
	Digest            string
}

// Copy is an object in a cluster.
type Copy struct {
	Cluster string
	Object  Object
	// ID is the permanent one.
	ID string
	// Version, Digest and Replicas are those of what users wrote.
	Version  int
	Digest   string
	Replicas int
}

// Violation is an invariant that does not hold.
type Violation struct {
	// Invariant is its number: I1 to I10.
	Invariant string
	// Because is the evidence.
	Because string
}

// Check returns what does not hold, in the order of the invariants.
func Check(h History) []Violation {
	j := newJudge(h)
	var out []Violation
	for _, invariant := range []struct {
		number string
		judge  func() []string
	}{
		{"I1", j.acknowledged},
		{"I2", j.removals},
		{"I3", j.healthy},
		{"I4", j.atRest},
		{"I5", j.fenced},
		{"I6", j.divided},
		{"I7", j.monotone},
		{"I8", j.still},
		{"I9", j.discreet},
		{"I10", j.modest},
	} {
		because := invariant.judge()
		slices.Sort(because)
		for _, why := range slices.Compact(because) {
			out = append(out, Violation{invariant.number, why})
		}
	}
	return out
}

// AtRest returns what keeps a fleet from having come to rest as users want it: of
// the invariants those that are about the end alone. It needs writes, moves, absences,
// policies and the end.
func AtRest(h History) []Violation {
	return slices.DeleteFunc(Check(h), func(v Violation) bool { return !slices.Contains([]string{"I1", "I4", "I6"}, v.Invariant) })
}

// judge has the history by its objects and policies.
type judge struct {
	History
	writes map[Object][]Write
	moves  map[string][]Move
}

func newJudge(h History) *judge {
	j := &judge{History: h, writes: map[Object][]Write{}, moves: map[string][]Move{}}
	for _, w := range h.Writes {
		j.writes[w.Object] = append(j.writes[w.Object], w)
	}
	for _, m := range h.Moves {
		j.moves[m.Policy] = append(j.moves[m.Policy], m)
	}
	return j
}
