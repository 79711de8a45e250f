package execution

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/execution/ownermeta"
	"github.com/flotilla-io/flotilla/reconciler/execution/seal"
)

// applyCache keeps what is known of the Works of one lane besides what stands in
// them: their manifests, read once per generation, and what was sent that their
// status does not say yet.
type applyCache struct {
	mu     sync.Mutex
	parsed map[client.ObjectKey]parsed
	sent   map[client.ObjectKey]sent
	seen   map[client.ObjectKey]map[int]finding // by ordinal
	// former is what manifests named that are no longer in their Work.
	former map[client.ObjectKey]former
	// renames are the Works whose objects still have a former name of theirs.
	renames ownermeta.Renames
	// sending are the objects that are sent right now.
	sending map[identity]bool
}

// finding is what differs in one state of an object.
type finding struct {
	state string
	text  string
}

// parsed is what the manifests of one generation of a Work are.
type parsed struct {
	uid        types.UID
	generation int64
	manifests  []manifest
}

// sent is the record of what was applied to a member of one Work.
type sent struct {
	uid     types.UID
	applied []workv1alpha1.AppliedHash
	drifts  []*drift // by ordinal; what was put back
}

func newApplyCache() *applyCache {
	return &applyCache{
		parsed: map[client.ObjectKey]parsed{}, sent: map[client.ObjectKey]sent{}, seen: map[client.ObjectKey]map[int]finding{}, sending: map[identity]bool{},
		former: map[client.ObjectKey]former{},
	}
}

// manifests returns the Work's manifests.
func (l *applyCache) manifests(work *workv1alpha1.Work) []manifest {
	key := client.ObjectKeyFromObject(work)
	l.mu.Lock()
	known, ok := l.parsed[key]
	l.mu.Unlock()
	if ok && known.uid == work.UID && known.generation == work.Generation {
		return known.manifests
	}
	out := make([]manifest, len(work.Spec.Workload.Manifests))
	for i := range out {
		out[i] = parseManifest(i, work.Spec.Workload.Manifests[i].Raw)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if was := l.parsed[key]; was.uid == work.UID && was.generation < work.Generation {
		l.outdate(key, was, out)
	}
	l.parsed[key] = parsed{uid: work.UID, generation: work.Generation, manifests: out}
	return out
}

// records returns the record of what was applied, one entry for each of count manifests, empty
// for those never applied. What the Work does not say yet counts, what others say there does not.
func (l *applyCache) records(work *workv1alpha1.Work, by seal.Seal, count int) []workv1alpha1.AppliedHash {
	out := make([]workv1alpha1.AppliedHash, count)
	for i := range out {
		out[i].Ordinal = i
	}
	applied := by.Opened(work.Status.Applied)
	l.mu.Lock()
	if unwritten, ok := l.sent[client.ObjectKeyFromObject(work)]; ok && unwritten.uid == work.UID {
		applied = unwritten.applied
	}
	l.mu.Unlock()
	for _, record := range applied {
		if record.Ordinal >= 0 && record.Ordinal < count {
			out[record.Ordinal] = record
		}
	}
	return out
}

// untold returns what was put back that is not written to the Work yet, one
// entry for each of count manifests; nil for nothing.
func (l *applyCache) untold(work *workv1alpha1.Work, count int) []*drift {
	out := make([]*drift, count)
	l.mu.Lock()
	defer l.mu.Unlock()
	unwritten := l.sent[client.ObjectKeyFromObject(work)]
	for i, d := range unwritten.drifts {
		if unwritten.uid == work.UID && i < count && d != nil && d.reverted {
			out[i] = d
		}
	}
	return out
}

// wrote keeps the record of what was applied, and put back, until the Work's
// status has it.
func (l *applyCache) wrote(s *state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[s.key] = sent{uid: s.work.UID, applied: slices.Clone(s.applied), drifts: slices.Clone(s.drifts)}
}

// settled forgets that record: the Work's status has it.
func (l *applyCache) settled(key client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sent, key)
}

// found returns what was found to differ in this state of an object.
func (l *applyCache) found(key client.ObjectKey, ordinal int, state string) (text string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, ok := l.seen[key][ordinal]
	return f.text, ok && f.state == state
}

// find keeps what differs in a state of an object.
func (l *applyCache) find(key client.ObjectKey, ordinal int, f finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[key] == nil {
		l.seen[key] = map[int]finding{}
	}
	l.seen[key][ordinal] = f
}

func (l *applyCache) forget(key client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, key)
	delete(l.sent, key)
	delete(l.parsed, key)
	delete(l.former, key)
	l.renames.Note(client.ObjectKey{}, key)
}
