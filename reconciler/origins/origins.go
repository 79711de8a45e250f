// Package origins reads the sources that Kustomizations apply, of whatever kind they are.
//
// In go a reader and the name of a source; out come its artifact, and what else those who follow it need to know. Which kinds
// are followed stands in one list here. The package writes nothing, and fetches nothing.
package origins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/inclusion"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Object is a source of any kind.
type Object interface {
	client.Object
	sourcev1.Source
	GetConditions() []metav1.Condition
}

// Facts are what the kinds keep each in fields of its own.
type Facts struct {
	// URL is where the source is fetched from.
	URL string
	// Reference is which of its revisions are followed, for people, such as "branch main".
	Reference string
	// Ignore and Directories say which of the files it takes.
	Ignore      *string
	Directories []string
	Suspended   bool
	// Handled is the latest request for a reconcile that was handled, and Observed the generation that was.
	Handled  string
	Observed int64
	// Verify is which signatures of its revisions the source asks for.
	Verify provenance.Demand
	// Unverified says why its artifact must not be built; empty if it may.
	Unverified string
	// Fetching means that the artifact is on its way to the store; Unverified says so, too.
	Fetching bool
	// Included names what its artifact holds of other sources, such as "base main@sha1:9f2c11d0"; empty for nothing.
	Included string
	// History says in one line that its artifact is not known to follow the one before; empty where it does.
	History string
}

// Kind is a kind of sources.
type Kind struct {
	// Name is such as GitRepository, Plural is for people, and Word is how commands name the kind, after "source".
	Name, Plural, Word string
	// Given means that others make its artifacts: there is nothing to suspend, and nothing to ask for.
	Given bool
	// New returns an empty object, and List an empty list of them.
	New  func() Object
	List func() client.ObjectList

	is    func(client.Object) bool
	facts func(Object) Facts
}

// kinds are all that are followed.
var kinds = []Kind{
	kind(sourcev1.GitRepositoryKind, "GitRepositories", "git", func() client.ObjectList { return &sourcev1.GitRepositoryList{} }, ofGitRepository),
	kind(sourcev1.OCIRepositoryKind, "OCIRepositories", "oci", func() client.ObjectList { return &sourcev1.OCIRepositoryList{} }, ofOCIRepository),
	kind(sourcev1.BucketKind, "Buckets", "bucket", func() client.ObjectList { return &sourcev1.BucketList{} }, ofBucket),
	given(kind(sourcev1.ExternalArtifactKind, "ExternalArtifacts", "external", func() client.ObjectList { return &sourcev1.ExternalArtifactList{} }, ofExternalArtifact)),
}

func kind[T any, P interface {
	*T
	Object
}](name, plural, word string, list func() client.ObjectList, facts func(P) Facts) Kind {
	return Kind{
		Name: name, Plural: plural, Word: word, List: list,
		New:   func() Object { return P(new(T)) },
		is:    func(obj client.Object) bool { _, is := obj.(P); return is },
		facts: func(obj Object) Facts { return facts(obj.(P)) },
	}
}

func given(k Kind) Kind {
	k.Given = true
	return k
}

func ofGitRepository(r *sourcev1.GitRepository) Facts {
	return Facts{
		URL: r.Spec.URL, Reference: referenceOf(r.Spec.Reference), Ignore: r.Spec.Ignore, Directories: r.Spec.SparseCheckout, Suspended: r.Spec.Suspend, Handled: r.Status.LastHandledReconcileAt, Observed: r.Status.ObservedGeneration,
		Verify: provenance.Demand{Git: r.Spec.Verification}, Unverified: provenance.Unverified(r), Included: inclusion.Text(r), History: historyOf(r),
	}
}

func ofOCIRepository(r *sourcev1.OCIRepository) Facts {
	return Facts{
		URL: r.Spec.URL, Reference: referenceOfOCI(r.Spec.Reference), Ignore: r.Spec.Ignore,
		Suspended: r.Spec.Suspend, Handled: r.Status.LastHandledReconcileAt, Observed: r.Status.ObservedGeneration,
		Verify: provenance.Demand{OCI: r.Spec.Verify}, Unverified: provenance.UnverifiedArtifact(r), History: historyOf(r),
	}
}

// historyOf returns what the artifact says of its history.
func historyOf(of Object) string {
	if a := of.GetArtifact(); a != nil {
		return excerpt.Line(a.Metadata[gitopsv1alpha1.HistoryKey])
	}
	return ""
}

func ofBucket(b *sourcev1.Bucket) Facts {
	scheme, reference := "https", "all objects"
	if b.Spec.Insecure {
		scheme = "http"
	}
	if b.Spec.Prefix != "" {
		reference = "prefix " + b.Spec.Prefix
	}
	return Facts{
		URL: scheme + "://" + strings.TrimSuffix(b.Spec.Endpoint, "/") + "/" + b.Spec.BucketName, Reference: reference, Ignore: b.Spec.Ignore,
		Suspended: b.Spec.Suspend, Handled: b.Status.LastHandledReconcileAt, Observed: b.Status.ObservedGeneration,
	}
}

func ofExternalArtifact(e *sourcev1.ExternalArtifact) Facts {
	out := Facts{Observed: e.Generation}
	if by := e.Spec.SourceRef; by != nil {
		out.Reference = "made by " + by.Kind + " " + cmp.Or(by.Namespace, e.Namespace) + "/" + by.Name
		if by.APIVersion != "" {
			out.Reference += " (" + by.APIVersion + ")"
		}
	}
	a := e.Status.Artifact
	if a == nil {
		return out
	}
	out.URL = a.URL
	noted := e.Annotations[gitopsv1alpha1.FetchedAnnotation]
	if noted == a.Digest {
		return out
	}
	artifact := fmt.Sprintf("the artifact of %s of ExternalArtifact %s/%s", a.Revision, e.Namespace, e.Name)
	if why, failed := strings.CutPrefix(noted, a.Digest+": "); failed {
		out.Unverified = artifact + " was not fetched: " + excerpt.Line(why)
	} else {
		out.Fetching, out.Unverified = true, artifact+" is being fetched"
	}
	return out
}

// referenceOfOCI returns the reference of an OCIRepository that is followed. If several are set, the first in this order counts.
func referenceOfOCI(ref *sourcev1.OCIRepositoryRef) string {
	switch {
	case ref == nil:
		return "tag latest"
	case ref.Digest != "":
		return "digest " + ref.Digest
	case ref.SemVer != "" && ref.SemverFilter != "":
		return "versions " + ref.SemVer + " that match " + ref.SemverFilter
	case ref.SemVer != "":
		return "versions " + ref.SemVer
	default:
		return "tag " + cmp.Or(ref.Tag, "latest")
	}
}

// referenceOf returns the reference of a GitRepository that is followed. If several are set, the first in this order counts.
func referenceOf(ref *sourcev1.GitRepositoryRef) string {
	if ref == nil {
		ref = &sourcev1.GitRepositoryRef{}
	}
	for _, r := range []struct{ title, value string }{
		{"commit", ref.Commit}, {"ref", ref.Name}, {"versions", ref.SemVer}, {"tag", ref.Tag}, {"branch", ref.Branch},
	} {
		if r.value != "" {
			return r.title + " " + r.value
		}
	}
	return "branch master"
}

// Kinds returns all kinds that are followed.
func Kinds() []Kind { return append([]Kind(nil), kinds...) }

// KindOf returns the kind of a name, and whether it is followed.
func KindOf(name string) (Kind, bool) {
	for _, k := range kinds {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// Names names the kinds that are followed, for people.
func Names() string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// ErrKind says that sources of a kind are not followed.
var ErrKind = errors.New("sources of this kind are not followed")

// Read reads a source. Errors: ErrKind; what the reader says.
func Read(ctx context.Context, hub client.Reader, source inventory.Source, opts ...client.GetOption) (Object, error) {
	k, followed := KindOf(source.Kind)
	if !followed {
		return nil, fmt.Errorf("%s: %w", source, ErrKind)
	}
	obj := k.New()
	return obj, hub.Get(ctx, source.ObjectKey, obj, opts...)
}

// Of names the source that an object is; the zero value for one that is none.
func Of(obj client.Object) inventory.Source {
	for _, k := range kinds {
		if k.is(obj) {
			return inventory.Source{Kind: k.Name, ObjectKey: client.ObjectKeyFromObject(obj)}
		}
	}
	return inventory.Source{}
}

// FactsOf returns the facts about a source; the zero value for an object that is none.
func FactsOf(obj client.Object) Facts {
	for _, k := range kinds {
		if k.is(obj) {
			return k.facts(obj.(Object))
		}
	}
	return Facts{}
}

// Revision returns the revision of a source's artifact; empty if it has none.
func Revision(of Object) string {
	if artifact := of.GetArtifact(); artifact != nil {
		return artifact.Revision
	}
	return ""
}

// Conditions returns the conditions of a source. What others make is Ready with its artifact unless they say otherwise, as
// they need not say so: nobody else looks at that.
func Conditions(of Object) []metav1.Condition {
	said := of.GetConditions()
	kind, _ := KindOf(Of(of).Kind)
	if !kind.Given || of.GetArtifact() == nil || apimeta.FindStatusCondition(said, meta.ReadyCondition) != nil {
		return said
	}
	ready := metav1.Condition{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.SucceededReason}
	if stalled := apimeta.FindStatusCondition(said, meta.StalledCondition); stalled != nil && stalled.Status == metav1.ConditionTrue {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, stalled.Reason, stalled.Message
	}
	return append(slices.Clone(said), ready)
}
