package alerting

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// TestWhatAProviderHasOfSecretsIsNotReported: of a Provider that a Kustomization put text of a Secret into.
func TestWhatAProviderHasOfSecretsIsNotReported(t *testing.T) {
	const canary = "canary7f3a9"
	synctest.Test(t, func(t *testing.T) {
		provider := providerOf("chat", "generic")
		provider.Annotations = map[string]string{gitopsv1alpha1.HoldsSecretsAnnotation: gitopsv1alpha1.HoldsInFields}
		provider.Spec.Address = "https://" + canary + ".invalid"
		w := start(t, Options{}, alertTo("a", "chat"), provider)
		w.send = func(host string) error { return errors.New("no such host " + host) }
		advance(5 * time.Second)
		w.Recorder().Event(kustomization("main@sha1:1"), corev1.EventTypeWarning, "BuildFailed", "x")
		advance(time.Minute)
		_, events := w.took()
		want := []string{"a: MessageNotSent: the Provider chat is not told of events: no such host ***; each message is tried for 15 minutes"}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
