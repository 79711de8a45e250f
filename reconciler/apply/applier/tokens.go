package applier

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/ssa/utils"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// token returns a finding for a Secret that is to hold the token of a service account which neither exists nor comes
// with the set: the control plane's token controller, as that of any cluster, deletes such a Secret at once.
func (v surveyor) token(ctx context.Context, obj *unstructured.Unstructured) (*Finding, error) {
	account := obj.GetAnnotations()[corev1.ServiceAccountNameKey]
	key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: account}
	if !holdsToken(obj) || account == "" || account == defaultAccount || v.accounts[key] {
		return nil, nil
	}
	err := v.a.reader.hub.Get(ctx, client.ObjectKey(key), &corev1.ServiceAccount{})
	if apierrors.IsNotFound(err) {
		return finding(inventory.IDOf(obj), ReasonAccountNotFound, "it is to hold the token of the service account %s, which %s does not have, and would be deleted at once: commit the account too, create it, or correct the annotation %s",
			account, v.a.opts.server(), corev1.ServiceAccountNameKey), nil
	}
	if apierrors.IsForbidden(err) && v.a.opts.Remote {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up the service account %s: %w", key, err)
	}
	return nil, nil
}

func holdsToken(obj *unstructured.Unstructured) bool {
	return utils.IsSecret(obj) && obj.Object["type"] == string(corev1.SecretTypeServiceAccountToken)
}

// tokensLast separates the Secrets that hold tokens from the other changes, among which their accounts may be. They
// are applied last, as without its account such a Secret is deleted.
func tokensLast(changes []*Change) (first, last []*Change) {
	for _, c := range changes {
		if holdsToken(c.Desired) {
			last = append(last, c)
			continue
		}
		first = append(first, c)
	}
	return first, last
}

// defaultAccount is the account that every namespace gets soon after it is created, without anybody's commit.
const defaultAccount = "default"
