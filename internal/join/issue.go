package join

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// IssueOptions are which accounts a member gets for its hub. Name and Member are
// required.
type IssueOptions struct {
	// Name of the cluster on the hub.
	Name string
	// Member is a client with all permissions there.
	Member client.Client
	// Namespace holds the accounts; empty means karmada-cluster.
	Namespace string
	// Own is for the account as which the hub acts, Impersonator for the one by
	// which the hub's users reach the member.
	Own, Impersonator bool
	// TokenTimeout is how long the member may take to issue tokens; zero means
	// 30 s.
	TokenTimeout time.Duration
}

// Issue creates the accounts in the member, and returns Secrets for the hub with
// their tokens. It may be run again.
func Issue(ctx context.Context, o IssueOptions) ([]*corev1.Secret, error) {
	options := Options{Name: o.Name, Member: o.Member, Namespace: o.Namespace, TokenTimeout: o.TokenTimeout}
	if err := options.complete(); err != nil {
		return nil, err
	}
	if err := options.leftBehind(ctx); err != nil {
		return nil, err
	}
	member := side{name: "member", client: o.Member, progress: options.Progress}
	unwanted := map[string]bool{ImpersonatorAccount: !o.Impersonator, accountOf(o.Name): !o.Own, roleOf(o.Name): !o.Own}
	objects := slices.DeleteFunc(accounts(o.Name, options.Namespace), func(obj client.Object) bool { return unwanted[obj.GetName()] })
	for _, obj := range objects {
		if err := member.put(ctx, obj); err != nil {
			return nil, err
		}
	}
	var out []*corev1.Secret
	if o.Own {
		token, err := options.token(ctx, accountOf(o.Name))
		if err != nil {
			return nil, err
		}
		out = append(out, hubSecret(options.Namespace, o.Name, map[string][]byte{
			clusterv1alpha1.SecretTokenKey:  token.Data[corev1.ServiceAccountTokenKey],
			clusterv1alpha1.SecretCADataKey: token.Data[corev1.ServiceAccountRootCAKey],
		}))
	}
	if o.Impersonator {
		token, err := options.token(ctx, ImpersonatorAccount)
		if err != nil {
			return nil, err
		}
		out = append(out, hubSecret(options.Namespace, ImpersonatorSecret(o.Name), map[string][]byte{
			clusterv1alpha1.SecretTokenKey: token.Data[corev1.ServiceAccountTokenKey],
		}))
	}
	return out, nil
}
