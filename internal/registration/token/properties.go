package token

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// checkProperties returns an error for properties that no Cluster may have.
func checkProperties(p identity.Properties) error {
	c := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	c.Name = "any"
	p.Give(c)
	errs, _ := validate.Cluster(c, nil)
	errs = append(errs, metav1validation.ValidateLabels(c.Labels, field.NewPath("metadata", "labels"))...)
	if len(errs) > 0 {
		return fmt.Errorf("what the cluster is said to be is %w: %w", ErrInvalid, errs.ToAggregate())
	}
	return nil
}

// ParseTaint parses KEY[=VALUE]:EFFECT.
func ParseTaint(text string) (corev1.Taint, error) {
	what, effect, ok := strings.Cut(text, ":")
	key, value, _ := strings.Cut(what, "=")
	if !ok || key == "" || effect == "" {
		return corev1.Taint{}, fmt.Errorf("the taint %q is %w: it is KEY=VALUE:EFFECT or KEY:EFFECT", text, ErrInvalid)
	}
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}, nil
}
