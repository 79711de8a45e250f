package agents

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// evidence reads the facts that a verdict depends on.
type evidence struct {
	hub  client.Client
	live client.Reader
}

// credit adds what is known of the requester, and returns its bootstrap token,
// if approval uses it up.
func (e evidence) credit(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, by requester, known *facts) (*corev1.Secret, error) {
	var err error
	if known.allowed, err = e.allowed(ctx, csr, by); err != nil {
		return nil, err
	}
	if by.token.ID == "" {
		return nil, nil
	}
	token := &corev1.Secret{}
	err = e.live.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(by.token.ID)}, token)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the token %s: %w", by.token.ID, err)
	}
	known.properties = token.Annotations[identity.PropertiesAnnotation]
	if by.token.Cluster == "" {
		return nil, nil
	}
	known.spent = err != nil
	known.usedBy = types.UID(token.Annotations[identity.UsedByAnnotation])
	return token, nil
}

// taken returns a Secret of the control plane's own that has the name of one of
// the agent's; empty if there is none. Where the control plane is its own member,
// tokens for it are there.
func (e evidence) taken(ctx context.Context, cluster string) (string, error) {
	for _, name := range []string{cluster, cluster + identity.ImpersonatorSuffix} {
		secret := &corev1.Secret{}
		err := e.live.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.NamespaceKarmadaCluster, Name: name}, secret)
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("read secret %s: %w", name, err)
		}
		if err == nil && secret.Type != corev1.SecretTypeOpaque {
			return name, nil
		}
	}
	return "", nil
}

// allowed asks RBAC whether the requester may have such a request approved.
func (e evidence) allowed(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, by requester) (bool, error) {
	kind := "clusteragent"
	if by.self {
		kind = "selfclusteragent"
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range csr.Spec.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Subresource: kind, Verb: "create", Version: "*",
		},
	}}
	if err := e.hub.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask what %s may do: %w", csr.Spec.Username, err)
	}
	return review.Status.Allowed, nil
}
