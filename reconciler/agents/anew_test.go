package agents_test

import (
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// watching has an agent watch the Works of its cluster for as long as it is let.
func (w *world) watching(t *testing.T, agent *rest.Config, cluster string) (ended <-chan struct{}) {
	t.Helper()
	patient := rest.CopyConfig(agent)
	patient.Timeout = 0
	hub, err := client.NewWithWatch(patient, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	day := int64(24 * time.Hour / time.Second)
	open := client.ListOptions{Namespace: "karmada-es-" + cluster, Raw: &metav1.ListOptions{TimeoutSeconds: &day}}
	if err := hub.List(t.Context(), &workv1alpha1.WorkList{}, &open); err != nil {
		t.Fatal(err)
	}
	stream, err := hub.Watch(t.Context(), &workv1alpha1.WorkList{}, &open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stream.Stop)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for range stream.ResultChan() { // until the server ends it
		}
	}()
	return closed
}

// isCut waits until a stream has ended.
func isCut(t *testing.T, what string, ended <-chan struct{}) {
	t.Helper()
	servertest.Until(t, what, func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
}

func (w *world) mayWatch(t *testing.T, agent *rest.Config, cluster string) {
	t.Helper()
	servertest.Until(t, "the agent may read its Works", func() bool {
		return hubOf(t, agent).List(t.Context(), &workv1alpha1.WorkList{}, client.InNamespace("karmada-es-"+cluster)) == nil
	})
}

// TestARegistrationEndsWhatIsOpen: who stole the key of an agent reads nothing any more
// once the cluster is registered anew, or has left, also by what it has opened before.
func TestARegistrationEndsWhatIsOpen(t *testing.T) {
	w := worldOf(t)
	stolen := w.register(t, "robbed", "id-robbed")
	w.mayWatch(t, stolen, "robbed")
	before := w.watching(t, stolen, "robbed")

	anew := w.first(t, "robbed", "id-robbed")
	isCut(t, "what the thief has open is cut", before)
	w.mayWatch(t, anew, "robbed")
	now := w.watching(t, anew, "robbed")
	select {
	case <-now:
		t.Error("what the agent has open was cut as well")
	default:
	}
	if err := w.Hub.Delete(t.Context(), clusterOf("robbed", "")); err != nil {
		t.Fatal(err)
	}
	isCut(t, "what an agent has open is cut when its cluster has left", now)
}

// TestACertificateOfTheSameMoment: one that was renewed in the very second in which the
// cluster is registered anew, is of the earlier registration as well.
func TestACertificateOfTheSameMoment(t *testing.T) {
	w := worldOf(t)
	agent := w.register(t, "moment", "id-moment")
	review := &authenticationv1.SelfSubjectReview{}
	if err := hubOf(t, agent).Create(t.Context(), review); err != nil || len(review.Status.UserInfo.Extra[identity.RegisteredByAnnotation]) != 1 {
		t.Errorf("by which registration it was let in is not noted: %v, %v", review.Status.UserInfo.Extra, err)
	}
	token := w.byToken(t, w.token(t, "moment", "id-moment"))
	renewed, err := registration.Request(t.Context(), agent, registration.Options{Cluster: "moment", ClusterID: "id-moment"})
	if err != nil {
		t.Fatal(err)
	}
	anew := w.firstBy(t, token, "moment", "id-moment")
	err = hubOf(t, registration.Connection(w.admin, renewed)).Create(t.Context(), &authenticationv1.SelfSubjectReview{})
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("what was renewed just before is still good: %v", err)
	}
	asIt := rest.CopyConfig(w.admin)
	asIt.Impersonate = rest.ImpersonationConfig{UserName: identity.Agent("moment"), Groups: []string{identity.AgentsGroup}}
	if err := hubOf(t, asIt).Get(t.Context(), client.ObjectKey{Name: "moment"}, clusterOf("", "")); err != nil {
		t.Errorf("an administrator in the name of the agent: %v", err)
	}
	if _, err := registration.Request(t.Context(), anew, registration.Options{Cluster: "moment", ClusterID: "id-moment"}); err != nil {
		t.Errorf("the next certificate of the new registration: %v", err)
	}
}
