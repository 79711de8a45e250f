package situation

import (
	"fmt"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// unposted has the commit statuses that could not be posted to a forge.
type unposted struct {
	by   map[unpostedKey]int
	keys []unpostedKey // in the order of their first CommitStatus
}

// unpostedKey is the Provider, and the reason why it cannot post.
type unpostedKey struct{ namespace, provider, reason, message string }

// CommitStatus adds a CommitStatus.
func (s *Survey) CommitStatus(cs *gitopsv1alpha1.CommitStatus) {
	synced := apimeta.FindStatusCondition(cs.Status.Conditions, gitopsv1alpha1.CommitStatusSynced)
	if synced == nil || synced.Status != metav1.ConditionFalse || cs.DeletionTimestamp != nil {
		return
	}
	u, key := &s.asides.unposted, unpostedKey{cs.Namespace, cs.Spec.ProviderRef.Name, synced.Reason, synced.Message}
	if u.by == nil {
		u.by = map[unpostedKey]int{}
	}
	if u.by[key]++; u.by[key] == 1 {
		u.keys = append(u.keys, key)
	}
}

// notes returns one note for each Provider and reason.
func (u *unposted) notes() []Note {
	var out []Note
	for _, key := range u.keys {
		n := u.by[key]
		out = append(out, Note{
			Kind: notificationv1beta3.ProviderKind, Namespace: key.namespace, Name: key.provider,
			Message: fmt.Sprintf("its forge is not told what came of commits (%d %s): %s: %s", n, plural(n, "status", "statuses"), key.reason, excerpt.Line(key.message)),
			Next:    "mend what it says; it is tried again by itself: flotilla get commitstatuses" + inNamespace(key.namespace),
		})
	}
	return out
}
