package poster

import (
	"context"
	"errors"
	"testing"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

type unreachable struct{ err error }

func (u unreachable) send(context.Context, *gitopsv1alpha1.CommitStatus, *posting) error {
	return u.err
}

// TestWhatAProviderHasOfSecretsIsNotReported: it is in the condition of the CommitStatus otherwise.
func TestWhatAProviderHasOfSecretsIsNotReported(t *testing.T) {
	provider := &notificationv1beta3.Provider{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{gitopsv1alpha1.HoldsSecretsAnnotation: gitopsv1alpha1.HoldsInFields}},
		Spec:       notificationv1beta3.ProviderSpec{Address: "https://canary7f3a9.invalid/org/repo"},
	}
	fault := errors.New("look up canary7f3a9.invalid: no such host")
	err := discreet{unreachable{fault}, provider, nil}.send(t.Context(), nil, nil)
	if !errors.Is(err, fault) || err.Error() != "look up ***: no such host" {
		t.Errorf("told: %v", err)
	}
}
