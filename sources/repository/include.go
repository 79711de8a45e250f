package repository

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/inclusion"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/fetching"
)

// Reasons of the condition IncludeUnavailable; all but ReasonCycle are Flux's.
const (
	reasonIllegalPath = "IllegalPath"
	reasonNotFound    = "NotFound"
	reasonNoArtifact  = "NoArtifact"
	reasonCopyFailure = "CopyFailure"
	// ReasonCycle means that a repository includes itself, maybe by way of others.
	ReasonCycle = "IncludeCycle"
)

const (
	// mostIncludes is how many repositories one may include.
	mostIncludes = 32
	// mostIncluded is how large the artifacts of all of them may be, in bytes: they
	// are in memory together before exclusions are looked at.
	mostIncluded = 128 << 20
)

// included is an artifact that belongs into that of another repository.
type included struct {
	name     string // of its GitRepository
	from, to string // paths from the root; "." is the root
	artifact *meta.Artifact
}

// artifactsOf returns what is included, as the status has it.
func artifactsOf(all []included) []*meta.Artifact {
	var out []*meta.Artifact
	for _, one := range all {
		out = append(out, one.artifact)
	}
	return out
}

// includer finds and reads what spec.include names.
type includer struct {
	hub   client.Reader
	store *artifact.Store
}

// find is the phase that finds the artifacts that belong into that of the
// repository.
func (i includer) find(ctx context.Context, s *state) (loop.Next, error) {
	err := i.all(ctx, s)
	if e := loop.As(err, ""); e != nil && e.Reason != "" {
		s.fails = sourcev1.IncludeUnavailableCondition
	}
	return loop.Next{}, err
}

func (i includer) all(ctx context.Context, s *state) error {
	include := s.object.Spec.Include
	if len(include) == 0 {
		s.included = []included{}
		return nil
	}
	if len(include) > mostIncludes {
		return loop.Stalled(reasonCopyFailure, fmt.Errorf("spec.include names %d repositories, %d are allowed", len(include), mostIncludes))
	}
	var list sourcev1.GitRepositoryList
	if err := i.hub.List(ctx, &list, client.InNamespace(s.object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the GitRepositories of %s: %w", s.object.Namespace, err)
	}
	there := make(map[string]*sourcev1.GitRepository, len(list.Items))
	for n := range list.Items {
		there[list.Items[n].Name] = &list.Items[n]
	}
	there[s.object.Name] = s.object
	ring := inclusion.Ring(s.object.Name, func(name string) []string {
		if r := there[name]; r != nil {
			return inclusion.Names(r)
		}
		return nil
	})
	if ring != nil {
		return loop.Waiting(ReasonCycle, s.interval, fmt.Errorf("the repository would be in its own artifact: %s", inclusion.RingText(ring)))
	}
	all := make([]included, 0, len(include))
	for n := range include {
		one, err := i.one(s, &include[n], there[include[n].GitRepositoryRef.Name])
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	s.included = all
	return nil
}

// one returns what an entry of spec.include stands for.
func (i includer) one(s *state, include *sourcev1.GitRepositoryInclude, r *sourcev1.GitRepository) (included, error) {
	out := included{name: include.GitRepositoryRef.Name}
	waits := func(reason, format string, args ...any) (included, error) {
		return included{}, loop.Waiting(reason, min(s.interval, fetching.Awaited), fmt.Errorf("include %s: "+format, append([]any{out.name}, args...)...))
	}
	var err error
	if out.from, err = inclusion.Path(include.GetFromPath()); err != nil {
		return included{}, loop.Stalled(reasonIllegalPath, fmt.Errorf("include %s: fromPath %w", out.name, err))
	}
	if out.to, err = inclusion.Path(include.GetToPath()); err != nil {
		return included{}, loop.Stalled(reasonIllegalPath, fmt.Errorf("include %s: toPath %w", out.name, err))
	}
	switch {
	case r == nil:
		return waits(reasonNotFound, "the GitRepository %s/%s does not exist: create it, or correct spec.include", s.object.Namespace, out.name)
	case r.Status.Artifact == nil:
		return waits(reasonNoArtifact, "the GitRepository has no artifact yet: look at its conditions")
	case provenance.Unverified(r) != "":
		return waits(sourcev1.VerificationError, "%s", provenance.Unverified(r))
	case !i.store.Owns(ownerOf(client.ObjectKeyFromObject(r)), r.Status.Artifact.Digest) || !i.store.Has(r.Status.Artifact.Digest):
		return waits(reasonNoArtifact, "its artifact is not in the store: waiting for the GitRepository to fetch it anew")
	}
	out.artifact = r.Status.Artifact.DeepCopy()
	return out, nil
}

// read returns the files that are included, where they belong.
func (i includer) read(ctx context.Context, s *state) ([]artifact.Addition, error) {
	var out []artifact.Addition
	left := mostIncluded
	for _, one := range s.included {
		files, err := i.store.Open(ctx, one.artifact.Digest)
		if err != nil {
			s.fails = sourcev1.IncludeUnavailableCondition
			return nil, loop.Retry(reasonCopyFailure, fmt.Errorf("include %s: %w", one.name, err))
		}
		moved := artifact.Files{}
		for name, file := range files {
			if to, within := one.move(name); within {
				moved[to] = file
				left -= len(file.Data)
			}
		}
		switch {
		case len(moved) == 0 && one.from != ".":
			s.fails = sourcev1.IncludeUnavailableCondition
			return nil, loop.Waiting(reasonCopyFailure, s.interval, fmt.Errorf("include %s: fromPath %q: %w in its artifact %s", one.name, one.from, artifact.ErrPath, one.artifact.Revision))
		case left < 0:
			s.fails = sourcev1.IncludeUnavailableCondition
			return nil, loop.Waiting(reasonCopyFailure, s.interval, fmt.Errorf("spec.include: more than %d bytes: %w; name folders in fromPath", mostIncluded, artifact.ErrTooLarge))
		}
		out = append(out, artifact.Addition{Name: "the include " + one.name, Files: moved})
	}
	return out, nil
}

// move returns where a file of an included artifact belongs, if it does.
func (in included) move(name string) (string, bool) {
	switch {
	case in.from == ".":
		return path.Join(in.to, name), true
	case name == in.from:
		return in.to, in.to != "."
	default:
		rest, within := strings.CutPrefix(name, in.from+"/")
		return path.Join(in.to, rest), within
	}
}

// users returns those that include a repository.
func (i includer) users(ctx context.Context, of client.Object) []reconcile.Request {
	var list sourcev1.GitRepositoryList
	if err := i.hub.List(ctx, &list, client.InNamespace(of.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		// The cache is there before anything is mapped; otherwise the interval will do.
		ctrl.LoggerFrom(ctx).Error(err, "who includes a GitRepository is not known", "name", of.GetName())
		return nil
	}
	var out []reconcile.Request
	for n := range list.Items {
		for _, name := range inclusion.Names(&list.Items[n]) {
			if name == of.GetName() {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[n])})
				break
			}
		}
	}
	return out
}

// concerning passes what concerns those that include a repository. A new one has
// no artifact yet.
type concerning struct{ predicate.Funcs }

// Create returns false.
func (concerning) Create(event.CreateEvent) bool { return false }

// Update reports whether the change concerns others.
func (concerning) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*sourcev1.GitRepository)
	after, too := e.ObjectNew.(*sourcev1.GitRepository)
	return ok && too && inclusion.Concerns(before, after)
}
