package execution

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
)

// manifest is what a look at a Work needs to know of one of its manifests.
type manifest struct {
	ordinal int
	gvk     schema.GroupVersionKind
	key     types.NamespacedName
	hash    string
	err     error // why it cannot be carried
}

// parse returns the Work's manifests, read once per generation.
func (l *lane) parse(work *workv1alpha1.Work) ([]manifest, error) {
	key := client.ObjectKeyFromObject(work)
	l.mu.Lock()
	known, ok := l.parsed[key]
	l.mu.Unlock()
	if ok && known.uid == work.UID && known.generation == work.Generation {
		return known.manifests, nil
	}
	out := make([]manifest, len(work.Spec.Workload.Manifests))
	for i := range out {
		out[i] = parseManifest(i, work.Spec.Workload.Manifests[i].Raw)
	}
	l.mu.Lock()
	l.parsed[key] = parsed{uid: work.UID, generation: work.Generation, manifests: out}
	l.mu.Unlock()
	return out, nil
}

func parseManifest(ordinal int, raw []byte) manifest {
	m := manifest{ordinal: ordinal, hash: members.Hash(raw)}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &object); err != nil {
		m.err = fmt.Errorf("manifest %d does not parse: %w", ordinal, err)
		return m
	}
	m.gvk = object.GroupVersionKind()
	m.key = types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	switch {
	case m.gvk.Kind == "" || m.gvk.Version == "":
		m.err = fmt.Errorf("manifest %d has no apiVersion or kind", ordinal)
	case m.key.Name == "":
		m.err = fmt.Errorf("manifest %d has no name: a name made by the member could be made twice", ordinal)
	}
	return m
}

// object returns the whole manifest.
func (m *manifest) object(work *workv1alpha1.Work) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(work.Spec.Workload.Manifests[m.ordinal].Raw); err != nil {
		return nil, fmt.Errorf("manifest %d does not parse: %w", m.ordinal, err)
	}
	return out, nil
}

// records returns the record of what was applied, one entry for each of count
// manifests; those never applied have an empty one. What was sent and is not
// written to the Work yet counts.
func (l *lane) records(work *workv1alpha1.Work, count int) []workv1alpha1.AppliedHash {
	out := make([]workv1alpha1.AppliedHash, count)
	for i := range out {
		out[i].Ordinal = i
	}
	applied := work.Status.Applied
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

// sentNow keeps the record of what was applied until the Work's status has it.
func (l *lane) sentNow(s *state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[s.key] = sent{uid: s.work.UID, applied: slices.Clone(s.applied)}
}

// written forgets that record: the Work's status has it.
func (l *lane) written(key client.ObjectKey) {
	l.held.Clear(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sent, key)
}

// suspended says whether changes are kept from the member.
func suspended(work *workv1alpha1.Work) bool {
	return work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching
}

// overwrites says whether a manifest takes over an object that is in its way.
func overwrites(desired *unstructured.Unstructured) bool {
	return desired.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation] == workv1alpha2.ResourceConflictResolutionOverwrite
}
