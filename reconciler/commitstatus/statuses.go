package commitstatus

import (
	"context"
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// statuses are the CommitStatuses of the hub, own writes included, and when each was
// written last.
type statuses struct {
	hub      client.Reader
	written  *writecache.Cache[*gitopsv1alpha1.CommitStatus]
	followed *followed
	clock    clock.PassiveClock
	every    time.Duration // between two changes of words alone
}

// of returns the CommitStatuses of a Kustomization by name.
func (s statuses) of(ctx context.Context, ks *kustomizev1.Kustomization) (map[string]*gitopsv1alpha1.CommitStatus, error) {
	var list gitopsv1alpha1.CommitStatusList
	if err := s.hub.List(ctx, &list, client.InNamespace(ks.Namespace)); err != nil {
		return nil, fmt.Errorf("list commit statuses: %w", err)
	}
	out := map[string]*gitopsv1alpha1.CommitStatus{}
	for i := range list.Items {
		if about(&list.Items[i], ks.Name) {
			out[list.Items[i].Name] = &list.Items[i]
		}
	}
	for _, written := range s.written.Unseen(func(cs *gitopsv1alpha1.CommitStatus) bool {
		return cs.Namespace == ks.Namespace && about(cs, ks.Name)
	}) {
		if have := out[written.Name]; have == nil || writecache.Older(have.ResourceVersion, written.ResourceVersion) {
			out[written.Name] = written
		}
	}
	return out, nil
}

func about(cs *gitopsv1alpha1.CommitStatus, kustomization string) bool {
	return cs.Spec.KustomizationRef != nil && cs.Spec.KustomizationRef.Name == kustomization
}

// delay returns how long a change of words alone has to wait.
func (s statuses) delay(have, desired *gitopsv1alpha1.CommitStatus) time.Duration {
	same := have.Spec.Commit == desired.Spec.Commit && have.Spec.State == desired.Spec.State && have.Spec.Context == desired.Spec.Context
	if !same || desired.Spec.State != gitopsv1alpha1.CommitPending {
		return 0
	}
	at, ok := s.followed.changed(desired)
	if !ok {
		return 0
	}
	return s.every - s.clock.Since(at)
}

func (s statuses) wrote(ctx context.Context, cs *gitopsv1alpha1.CommitStatus) {
	s.written.Wrote(cs.DeepCopy())
	s.followed.wrote(cs, s.clock.Now())
	log.FromContext(ctx).Info("commit status", "commit", cs.Spec.Commit, "state", cs.Spec.State, "description", cs.Spec.Description)
}
