package commitstatus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/comment"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/hint"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
	"github.com/flotilla-io/flotilla/reconciler/secrets/inherited"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Sources keeps one CommitStatus per source, namespace and Provider, which sums up those of the
// Kustomizations there. Use NewSources.
type Sources struct {
	hub         client.Client
	events      loop.Recorder
	opts        Options
	alerts      alerts
	statuses    statuses
	followed    *followed
	expressions *expression.Compiler
}

// NewSources returns the loop; hub reads from a cache.
func NewSources(hub client.Client, events loop.Recorder, opts Options) *Sources {
	opts = opts.withDefaults()
	kept := &followed{byKey: map[client.ObjectKey]*memory{}}
	return &Sources{
		hub: hub, events: events, opts: opts, followed: kept,
		alerts:      alerts{hub: hub, crossNamespace: opts.AllowCrossNamespace, secrets: opts.Secrets},
		statuses:    statuses{hub: hub, written: writecache.New[*gitopsv1alpha1.CommitStatus](opts.Clock), followed: kept, clock: opts.Clock, every: opts.Every},
		expressions: expression.NewCompiler(expression.Limits{}),
	}
}

// keyOfSource names what a namespace applies of a source.
func keyOfSource(namespace string, source inventory.Source) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: source.Kind + "/" + source.Namespace + "/" + source.Name}
}

// sourceOfKey is the inverse of keyOfSource.
func sourceOfKey(key client.ObjectKey) inventory.Source {
	kind, rest, _ := strings.Cut(key.Name, "/")
	namespace, name, _ := strings.Cut(rest, "/")
	return inventory.Source{Kind: kind, ObjectKey: client.ObjectKey{Namespace: namespace, Name: name}}
}

// sourceRefOf returns the source that a CommitStatus is about.
func sourceRefOf(cs *gitopsv1alpha1.CommitStatus) inventory.Source {
	ref := cs.Spec.SourceRef
	if ref == nil {
		return inventory.Source{}
	}
	return inventory.Source{Kind: ref.Kind, ObjectKey: client.ObjectKey{Namespace: cmp.Or(ref.Namespace, cs.Namespace), Name: ref.Name}}
}

// sources is what the phases find out about what one namespace applies of a source.
type sources struct {
	key    client.ObjectKey
	source origins.Object // nil: there is none
	// revision is the one that the statuses are about, committed what it was packed from, or the same, and commit that one's commit.
	revision, committed, commit string
	// refused is why it is not taken; empty if it is.
	refused string
	// applied are the Kustomizations that apply it, and existing their statuses and those of the source.
	applied    []kustomizev1.Kustomization
	ofEach     map[string]*gitopsv1alpha1.CommitStatus
	existing   map[string]*gitopsv1alpha1.CommitStatus
	recipients []recipient
	// waits are dependencies that do not exist, by the names of those who wait for them.
	waits map[string]missing
	// abandoned are Kustomizations that wrote a part of the commit, and follow another source by now.
	abandoned []*kustomizev1.Kustomization
}

// recipient is a Provider with the Kustomizations whose health it gets.
type recipient struct {
	target
	of []source
}

// source is a Kustomization, and the Provider whose CommitStatus of it counts.
type source struct {
	ks       *kustomizev1.Kustomization
	provider string
}

// Reconcile sums up what one namespace applies of a source, and writes what differs.
func (r *Sources) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return loop.Result(loop.Run(ctx, &sources{key: req.NamespacedName}, r.read, r.find, r.sweep, r.write))
}

// read finds the source, who applies it, and what there is.
func (r *Sources) read(ctx context.Context, s *sources) (loop.Next, error) {
	key := sourceOfKey(s.key)
	source, err := origins.Read(ctx, r.hub, key)
	if client.IgnoreNotFound(err) != nil && !errors.Is(err, origins.ErrKind) {
		return loop.Next{}, fmt.Errorf("read the source %s: %w", key, err)
	}
	if err == nil && source.GetDeletionTimestamp() == nil {
		s.at(source)
	}
	if s.applied, err = appliersOf(ctx, r.hub, s.key.Namespace, key); err != nil {
		return loop.Next{}, err
	}
	if s.abandoned, err = s.abandonedBy(ctx, r.hub); err != nil {
		return loop.Next{}, err
	}
	if s.waits, err = waitingFor(ctx, r.hub, s.applied, r.opts.Secrets); err != nil {
		return loop.Next{}, err
	}
	if s.ofEach, err = r.statuses.of(ctx, s.key.Namespace, aboutKustomization("")); err != nil {
		return loop.Next{}, err
	}
	s.existing, err = r.statuses.of(ctx, s.key.Namespace, func(cs *gitopsv1alpha1.CommitStatus) bool {
		return cs.Spec.SourceRef != nil && sourceRefOf(cs) == key
	})
	return loop.Next{}, err
}

// at notes at which revision a source is. Of an artifact that is not taken it is not known which commit it was packed from.
func (s *sources) at(source origins.Object) {
	s.source, s.revision, s.committed = source, origins.Revision(source), origins.Packed(source)
	if repository, ok := source.(*sourcev1.GitRepository); ok {
		if refusal := provenance.Refused(repository); refusal.Revision != "" {
			s.revision, s.refused = refusal.Revision, "not verified: "+refusal.Why
		} else if refused := lineage.RefusedBy(repository); refused.Revision != "" {
			s.revision, s.refused = refused.Revision, "held back: "+refused.Why
		}
		s.committed = s.revision
	}
	s.commit = commitOf(s.committed)
}

// appliersOf returns the Kustomizations of a namespace that apply a source. They are the cache's.
func appliersOf(ctx context.Context, hub client.Reader, namespace string, source inventory.Source) ([]kustomizev1.Kustomization, error) {
	var list kustomizev1.KustomizationList
	if err := hub.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Kustomizations: %w", err)
	}
	var out []kustomizev1.Kustomization
	for _, ks := range list.Items {
		if inventory.SourceOf(&ks) == source && (ks.DeletionTimestamp == nil || isPruneBlocked(&ks)) {
			out = append(out, ks)
		}
	}
	return out, nil
}

// missing is a dependency that does not exist, and the one whose name is nearly that; empty where none is near.
type missing struct{ name, meant string }

// waitingFor returns which dependency of its namespace does not exist, for each Kustomization that has such a one.
func waitingFor(ctx context.Context, hub client.Reader, all []kustomizev1.Kustomization, known *inherited.Known) (map[string]missing, error) {
	out := map[string]missing{}
	for i := range all {
		ks := &all[i]
		for _, ref := range ks.Spec.DependsOn {
			if ref.Namespace != "" && ref.Namespace != ks.Namespace || out[ks.Name].name != "" {
				continue // what there is in other namespaces is not for all to know
			}
			key := client.ObjectKey{Namespace: ks.Namespace, Name: ref.Name}
			err := hub.Get(ctx, key, &kustomizev1.Kustomization{}, client.UnsafeDisableDeepCopy)
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("read the dependency %s of %s: %w", ref.Name, ks.Name, err)
			}
			if err != nil {
				out[ks.Name] = missing{ref.Name, hint.Dependency(ctx, hub, ks, key)}
			}
			if name := known.Hide(ks, ref.Name); err != nil && name != ref.Name {
				out[ks.Name] = missing{name: name} // what is like it would tell of it, too
			}
		}
	}
	return out, nil
}

// find finds out which targets which Kustomizations are reported to.
func (r *Sources) find(ctx context.Context, s *sources) (loop.Next, error) {
	if s.source == nil || s.source.GetNamespace() != s.key.Namespace && !r.opts.AllowCrossNamespace {
		return loop.Next{}, nil
	}
	list, err := r.alerts.in(ctx, s.key.Namespace)
	if err != nil {
		return loop.Next{}, err
	}
	byProvider := map[string]*recipient{}
	for i := range list {
		for j := range s.applied {
			if !selects(&list[i], &s.applied[j]) {
				continue
			}
			if err := r.add(ctx, s, byProvider, &list[i], &s.applied[j]); err != nil {
				return loop.Next{}, err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byProvider)) {
		if t := byProvider[name]; t != nil {
			s.recipients = append(s.recipients, *t)
		}
	}
	s.recipients = s.together(s.recipients)
	return loop.Next{}, nil
}

// add gives the Provider of an Alert a Kustomization; a Provider that takes no statuses is nil.
func (r *Sources) add(ctx context.Context, s *sources, byProvider map[string]*recipient, alert *notificationv1beta3.Alert, ks *kustomizev1.Kustomization) error {
	name := alert.Spec.ProviderRef.Name
	to, known := byProvider[name]
	if !known {
		t, found, err := r.alerts.target(ctx, ks, alert)
		if err != nil && !ofAlert(err) { // that is reported on the Kustomization
			return err
		}
		if found {
			t.name = sourceStatusName(sourceOfKey(s.key), name)
			to = &recipient{target: t}
		}
		byProvider[name] = to
	}
	if to != nil && !slices.Contains(to.of, source{ks, name}) {
		to.of = append(to.of, source{ks, name})
	}
	return nil
}

// sweep deletes the CommitStatuses that no target asks for any more.
func (r *Sources) sweep(ctx context.Context, s *sources) (loop.Next, error) {
	wanted := map[string]bool{}
	for _, t := range s.recipients {
		wanted[t.name] = true
	}
	if len(wanted) == 0 {
		r.followed.forget(s.key)
	}
	return loop.Next{Done: len(wanted) == 0 || s.commit == ""}, r.statuses.sweep(ctx, s.existing, wanted)
}

// write writes the statuses that differ, the only place that does.
func (r *Sources) write(ctx context.Context, s *sources) (out loop.Next, err error) {
	if len(s.abandoned) > 0 {
		out.After = abandonedPoll
	}
	for _, t := range s.recipients {
		t.at(s.revision, s.committed)
		shares := append(s.shares(t), s.abandonedShares(t)...)
		if s.existing[t.name] == nil && !slices.ContainsFunc(shares, func(s comment.Share) bool { return !s.Suspended }) {
			continue // nobody has begun yet
		}
		sum := rollup.Source(sharesOf(shares))
		if s.refused != "" {
			sum = rollup.Rollup{State: rollup.StateFailure, Description: rollup.Sanitise(s.refused)}
		}
		about := ofSource(s.source, s.key.Namespace)
		if about.context, err = r.statuses.unlike(ctx, s.existing[t.name], s.key.Namespace, t.repository, about); err != nil {
			return loop.Next{}, err
		}
		contextName, err := contextOf(ctx, r.expressions, about, t.target, verdict{state: states[sum.State], description: sum.Description})
		if err != nil {
			if r.followed.complains(s.key, meta.InvalidCELExpressionReason, err.Error()) {
				r.events.Event(s.source, corev1.EventTypeWarning, meta.InvalidCELExpressionReason, r.opts.Secrets.Clean(t.provider, err).Error())
			}
			continue
		}
		desired := r.desired(s, t.target, sum, contextName)
		if t.comments() {
			desired.Spec.Comment = comment.Of(comment.Report{Context: contextName, Commit: s.commit, Sum: sum, Shares: shares, Link: desired.Spec.TargetURL})
		}
		after, err := r.statuses.put(ctx, s.existing[t.name], desired)
		if err != nil {
			return loop.Next{}, err
		}
		if out.After == 0 || (after != 0 && after < out.After) {
			out.After = after
		}
	}
	return out, nil
}

// shares are what the Kustomizations have come to at the commit.
func (s *sources) shares(t recipient) []comment.Share {
	var out []comment.Share
	for _, of := range t.of {
		ks := of.ks
		there := commitOf(ks.Status.LastAttemptedRevision) == commitOf(s.revision)
		share := comment.Share{Share: rollup.Share{Name: ks.Name, Awaited: !there && !ks.Spec.Suspend, Suspended: !there && ks.Spec.Suspend, Waits: s.waits[ks.Name].name, Meant: s.waits[ks.Name].meant}}
		share.Reason, share.Retired = reasonOf(ks), isRetired(ks, s.applied)
		share.Unchanged = there && commitOf(changed(ks)) != commitOf(s.revision)
		if cs := s.ofEach[statusName(ks.Name, of.provider)]; cs != nil && cs.DeletionTimestamp == nil && (cs.Spec.Commit == s.commit || share.Unchanged) {
			share.State, share.Description, share.Places = stateOf(cs.Spec.State), cs.Spec.Description, placesOf(cs.Spec.ClusterStates)
			if c := cs.Spec.Clusters; c != nil {
				share.Ready, share.Total = int(c.Ready), int(c.Total)
			}
		}
		out = append(out, share)
	}
	return out
}

// stateOf is a commit's state as sums have it: one that could not be tried has failed.
func stateOf(state gitopsv1alpha1.CommitState) string {
	switch state {
	case gitopsv1alpha1.CommitSuccess:
		return rollup.StateSuccess
	case gitopsv1alpha1.CommitPending:
		return rollup.StatePending
	default:
		return rollup.StateFailure
	}
}

// desired returns the CommitStatus that a target is to have.
func (r *Sources) desired(s *sources, t target, sum rollup.Rollup, contextName string) *gitopsv1alpha1.CommitStatus {
	cs := &gitopsv1alpha1.CommitStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: t.name, Finalizers: []string{gitopsv1alpha1.CommitStatusFinalizer}},
		Spec: gitopsv1alpha1.CommitStatusSpec{
			ProviderRef: gitopsv1alpha1.LocalReference{Name: t.provider.Name},
			SourceRef:   &gitopsv1alpha1.SourceReference{Kind: origins.Of(s.source).Kind, Name: s.source.GetName()},
			Repository:  t.repository,
			Context:     contextName,
			Commit:      s.commit,
			State:       states[sum.State],
			Description: sum.Description,
		},
	}
	if s.source.GetNamespace() != s.key.Namespace {
		cs.Spec.SourceRef.Namespace = s.source.GetNamespace()
	} else {
		cs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.source, sourcev1.GroupVersion.WithKind(origins.Of(s.source).Kind))}
	}
	if sum.Total > 0 {
		cs.Spec.Clusters = countOf(sum)
	}
	if r.opts.TargetURL != "" {
		cs.Spec.TargetURL = strings.TrimRight(r.opts.TargetURL, "/") + "/" + s.key.Namespace
	}
	return cs
}

// countOf counts the clusters of a sum.
func countOf(sum rollup.Rollup) *gitopsv1alpha1.ClusterCount {
	return &gitopsv1alpha1.ClusterCount{Ready: int32(sum.Ready), Total: int32(sum.Total)} //nolint:gosec // fleets are smaller
}
