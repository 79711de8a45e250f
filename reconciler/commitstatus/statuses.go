package commitstatus

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// statuses are the CommitStatuses of the hub, own writes included, and when each was
// written last.
type statuses struct {
	hub      client.Client
	written  *writecache.Cache[*gitopsv1alpha1.CommitStatus]
	followed *followed
	clock    clock.PassiveClock
	every    time.Duration // between two changes of words alone, at first
}

// longestPause is the longest pause between two changes of words alone, unless Options.Every is longer.
const longestPause = 2 * time.Minute

// of returns the CommitStatuses of a namespace that are about something, by name.
func (s statuses) of(ctx context.Context, namespace string, about func(*gitopsv1alpha1.CommitStatus) bool) (map[string]*gitopsv1alpha1.CommitStatus, error) {
	var list gitopsv1alpha1.CommitStatusList
	if err := s.hub.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list commit statuses: %w", err)
	}
	out := map[string]*gitopsv1alpha1.CommitStatus{}
	for i := range list.Items {
		if about(&list.Items[i]) {
			out[list.Items[i].Name] = &list.Items[i]
		}
	}
	for _, written := range s.written.Unseen(func(cs *gitopsv1alpha1.CommitStatus) bool {
		return cs.Namespace == namespace && about(cs)
	}) {
		if have := out[written.Name]; have == nil || writecache.Older(have.ResourceVersion, written.ResourceVersion) {
			out[written.Name] = written
		}
	}
	return out, nil
}

// aboutKustomization finds those of one Kustomization; an empty name stands for all.
func aboutKustomization(name string) func(*gitopsv1alpha1.CommitStatus) bool {
	return func(cs *gitopsv1alpha1.CommitStatus) bool {
		return cs.Spec.KustomizationRef != nil && (name == "" || cs.Spec.KustomizationRef.Name == name)
	}
}

// sweep deletes those that are not wanted any more.
func (s statuses) sweep(ctx context.Context, existing map[string]*gitopsv1alpha1.CommitStatus, wanted map[string]bool) error {
	for name, cs := range existing {
		if wanted[name] || cs.DeletionTimestamp != nil {
			continue
		}
		if err := s.hub.Delete(ctx, cs, client.Preconditions{UID: &cs.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the commit status %s: %w", name, err)
		}
		s.written.Forget(client.ObjectKeyFromObject(cs))
	}
	return nil
}

// matches reports whether one has all that is desired of it. One that is being deleted is made anew when it is
// gone.
func matches(have, desired *gitopsv1alpha1.CommitStatus) bool {
	return have.DeletionTimestamp != nil || apiequality.Semantic.DeepEqual(have.Spec, desired.Spec) && maps.Equal(notesOf(have), notesOf(desired))
}

// put writes one if it differs; have is nil where there is none. It returns when to come back if a change
// is held back, because the last one was a moment ago.
func (s statuses) put(ctx context.Context, have, desired *gitopsv1alpha1.CommitStatus) (time.Duration, error) {
	if have == nil {
		if err := s.hub.Create(ctx, desired); err != nil {
			return 0, fmt.Errorf("create the commit status %s: %w", desired.Name, err)
		}
		s.wrote(ctx, desired)
		return 0, nil
	}
	if matches(have, desired) {
		return 0, nil
	}
	switch leaves := leavesPending(have, desired); {
	case leaves && have.Status.Posted.Commit == desired.Spec.Commit:
		return retryPeriod, nil // nothing of the new source is known yet
	case leaves:
		return 0, s.sweep(ctx, map[string]*gitopsv1alpha1.CommitStatus{have.Name: have}, nil) // its end is seen, as a change of others is
	}
	if wait := s.delay(have, desired); wait > 0 {
		return wait, nil
	}
	after := have.DeepCopy()
	after.Spec, after.Annotations = desired.Spec, desired.Annotations
	if err := s.hub.Patch(ctx, after, client.MergeFrom(have)); err != nil {
		return 0, fmt.Errorf("write the commit status %s: %w", desired.Name, err)
	}
	s.wrote(ctx, after)
	return 0, nil
}

// leavesPending reports whether the last commit that was told of is pending, and of another source than the one that the Kustomization
// follows by now: the CommitStatus has to end, which tells what became of that commit, and is made anew for those of the new source.
func leavesPending(have, desired *gitopsv1alpha1.CommitStatus) bool {
	was, is := have.Annotations[gitopsv1alpha1.FollowsAnnotation], desired.Annotations[gitopsv1alpha1.FollowsAnnotation]
	return was != "" && was != is && have.Status.Posted != nil && have.Status.Posted.State == gitopsv1alpha1.CommitPending
}

// notesOf are the annotations that say how the Kustomization comes and goes.
func notesOf(cs *gitopsv1alpha1.CommitStatus) map[string]string {
	out := map[string]string{}
	for _, key := range []string{gitopsv1alpha1.FollowsAnnotation, gitopsv1alpha1.ParentAnnotation, gitopsv1alpha1.KeepsAnnotation} {
		if value := cs.Annotations[key]; value != "" {
			out[key] = value
		}
	}
	return out
}

// delay returns how long a change of words alone has to wait: the longer the commit has been pending, the longer. Forges take
// few posts an hour.
func (s statuses) delay(have, desired *gitopsv1alpha1.CommitStatus) time.Duration {
	same := have.Spec.Commit == desired.Spec.Commit && have.Spec.State == desired.Spec.State && have.Spec.Context == desired.Spec.Context
	if !same || !maps.Equal(notesOf(have), notesOf(desired)) || desired.Spec.State != gitopsv1alpha1.CommitPending {
		return 0
	}
	last, ok := s.followed.changed(desired)
	if !ok || awaitsDependency(have) && !awaitsDependency(desired) {
		return 0
	}
	pause := max(s.every, min(last.at.Sub(last.since)/3, longestPause))
	return pause - s.clock.Since(last.at)
}

// awaitsDependency reports whether a dependency is waited for: once it is not, its name leads people astray, and that is told
// at once. The other way round has to wait, so that little is posted of what comes and goes.
func awaitsDependency(cs *gitopsv1alpha1.CommitStatus) bool {
	return strings.HasPrefix(cs.Spec.Description, "dependency ")
}

func (s statuses) wrote(ctx context.Context, cs *gitopsv1alpha1.CommitStatus) {
	s.written.Wrote(cs.DeepCopy())
	s.followed.wrote(cs, s.clock.Now())
	log.FromContext(ctx).Info("commit status", "commit", cs.Spec.Commit, "state", cs.Spec.State, "description", cs.Spec.Description)
}
