package proxy

import (
	"context"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// fresh is how long the contents of Secrets are taken to be current. A token that was
// rotated counts after that, or as soon as the member refuses the old one.
const fresh = 5 * time.Second

// credentials are the contents of the Secrets of a cluster.
type credentials struct {
	impersonator string // token that may do nothing but impersonate
	own          string // token that the hub acts with; only ever asks who the cluster is
	ca           []byte
	read         time.Time
	of           references
}

// references identify the Secrets.
type references struct {
	own, impersonator clusterv1alpha1.LocalSecretReference
}

func referencesOf(cluster *clusterv1alpha1.Cluster) (references, error) {
	spec := &cluster.Spec
	pull := spec.SyncMode == clusterv1alpha1.Pull
	switch {
	case spec.APIEndpoint == "" && pull:
		return references{}, unavailable(cluster.Name, "it is in pull mode and reports no endpoint: give its agent --cluster-api-endpoint with an address that the control plane reaches")
	case spec.APIEndpoint == "":
		return references{}, unavailable(cluster.Name, "it has no endpoint: set spec.apiEndpoint")
	case spec.ImpersonatorSecretRef == nil && pull:
		return references{}, unavailable(cluster.Name, "it is in pull mode and reports no impersonator: give its agent --report-secrets=KubeCredentials,KubeImpersonator")
	case spec.ImpersonatorSecretRef == nil:
		return references{}, unavailable(cluster.Name, "it has no spec.impersonatorSecretRef, so nobody can be impersonated in it: join it again")
	}
	out := references{impersonator: *spec.ImpersonatorSecretRef}
	if spec.SecretRef != nil {
		out.own = *spec.SecretRef
	}
	return out, nil
}

// readCredentials reads both Secrets of a cluster. The one with the hub's own
// token also holds the CA.
func (p *Proxy) readCredentials(ctx context.Context, cluster *clusterv1alpha1.Cluster, of references) (credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	impersonator, err := p.secret(ctx, cluster.Name, of.impersonator)
	if err != nil {
		return credentials{}, err
	}
	out := credentials{impersonator: tokenOf(impersonator), read: p.clock.Now(), of: of}
	if out.impersonator == "" {
		return credentials{}, unavailable(cluster.Name, "secret %s/%s has no %s", of.impersonator.Namespace, of.impersonator.Name, clusterv1alpha1.SecretTokenKey)
	}
	if of.own.Name == "" {
		return out, nil
	}
	own, err := p.secret(ctx, cluster.Name, of.own)
	if err != nil {
		return credentials{}, err
	}
	out.own, out.ca = tokenOf(own), own.Data[clusterv1alpha1.SecretCADataKey]
	return out, nil
}

func (p *Proxy) secret(ctx context.Context, cluster string, ref clusterv1alpha1.LocalSecretReference) (*corev1.Secret, error) {
	secret, err := p.opts.Secret(ctx, ref.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, unavailable(cluster, "secret %s/%s does not exist: the credentials for the cluster are gone", ref.Namespace, ref.Name)
	case err != nil:
		return nil, status(cluster, http.StatusInternalServerError, "InternalError", "read secret %s/%s: %v", ref.Namespace, ref.Name, err)
	}
	return secret, nil
}

func tokenOf(secret *corev1.Secret) string {
	return strings.TrimSpace(string(secret.Data[clusterv1alpha1.SecretTokenKey]))
}
