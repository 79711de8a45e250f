package listing

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// Overrides returns a function that calls found for the overrides of a namespace, or of all, and for
// those of the whole fleet. It skips those that the user may not read: they are used for notes only, and
// do not affect whether everything is ready.
func Overrides(ctx context.Context, hub client.Reader, namespace string, found func(policyv1alpha1.Override)) func() error {
	return func() error {
		for _, read := range []func() error{
			Each(ctx, hub, &policyv1alpha1.OverridePolicyList{}, func(o *policyv1alpha1.OverridePolicy) { found(o) }, client.InNamespace(namespace)),
			Each(ctx, hub, &policyv1alpha1.ClusterOverridePolicyList{}, func(o *policyv1alpha1.ClusterOverridePolicy) { found(o) }),
		} {
			if err := read(); err != nil && !apierrors.IsForbidden(err) {
				return err
			}
		}
		return nil
	}
}
