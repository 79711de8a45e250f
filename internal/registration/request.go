package registration

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

var (
	// ErrDenied means that the control plane refuses the certificate: a person has
	// to act, and the error has what to do.
	ErrDenied = errors.New("the control plane refuses the certificate")
	// ErrNotNow means that the control plane issued no certificate in time.
	ErrNotNow = errors.New("the control plane gave no certificate")
)

// Options are which certificate is requested. Cluster is required.
type Options struct {
	// Cluster is the cluster whose agent the certificate is for.
	Cluster string
	// ClusterID is the UID of the cluster's kube-system namespace. By it the
	// control plane distinguishes another cluster with the same name before it
	// issues anything. Empty leaves that for later.
	ClusterID string
	// Expiration is the requested lifetime of the certificate, at least ten
	// minutes; zero, and anything longer, means the longest that the control plane
	// issues.
	Expiration time.Duration
	// Key is the private key in PEM; nil makes a new one.
	Key []byte
	// Timeout is how long to wait for the certificate; zero means DefaultTimeout.
	Timeout time.Duration
}

// Credentials are a client certificate and its private key, both in PEM.
type Credentials struct{ Certificate, Key []byte }

// DefaultExpiration is the default lifetime of an agent's certificate. An agent
// renews it after two thirds of it, so that it lasts at least 30 days without the
// control plane, and can be renewed for 30 days after it has expired; while a
// stolen disk does not give access for a year.
const DefaultExpiration = 90 * 24 * time.Hour

// shortest is the shortest lifetime that the API accepts in a request.
const shortest = 10 * time.Minute

// Request requests the certificate of a cluster's agent from the control plane,
// waits until it is issued, and verifies that it is the requested one.
//
// hub may be authenticated by a bootstrap token (see Discover), which gets the
// first certificate; by the agent's own certificate, which gets the next one; or
// by one that has expired, which still gets the next one for some time, and may
// do nothing else. Errors: ErrDenied, ErrToken, ErrNotNow, or the server's error.
func Request(ctx context.Context, hub *rest.Config, o Options) (Credentials, error) {
	if !identity.IsClusterName(o.Cluster) {
		return Credentials{}, fmt.Errorf("%q is no name for a cluster: at most 48 characters, each a-z, 0-9 or -, the first and last no -", o.Cluster)
	}
	unlimited := rest.CopyConfig(hub)
	unlimited.QPS = -1 // the server's priority and fairness limits requests
	client, err := kubernetes.NewForConfig(unlimited)
	if err != nil {
		return Credentials{}, err
	}
	signer, key, err := keyOf(o.Key)
	if err != nil {
		return Credentials{}, err
	}
	request, err := o.request(signer)
	if err != nil {
		return Credentials{}, err
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	certificate, err := o.ask(ctx, client, request)
	if err != nil {
		return Credentials{}, explain(err, hub.Host)
	}
	if err := o.verify(certificate, signer.Public()); err != nil {
		return Credentials{}, err
	}
	return Credentials{Certificate: certificate, Key: key}, nil
}

// keyOf parses a private key, or generates one.
func keyOf(content []byte) (crypto.Signer, []byte, error) {
	if len(content) > 0 {
		key, err := keyutil.ParsePrivateKeyPEM(content)
		signer, ok := key.(crypto.Signer)
		if err != nil || !ok {
			return nil, nil, errors.New("the key is no private key in PEM")
		}
		return signer, content, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	content, err = keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the key: %w", err)
	}
	return key, content, nil
}

// nameLength is the length of the random suffix of a request's name. It makes
// names that nobody guesses, as an agent may read every request whose name it
// knows.
const nameLength = 16

func (o *Options) request(signer crypto.Signer) (*certificatesv1.CertificateSigningRequest, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: identity.Agent(o.Cluster), Organization: []string{identity.AgentsGroup}},
	}, signer)
	if err != nil {
		return nil, fmt.Errorf("make the request for a certificate: %w", err)
	}
	out := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: o.Cluster + "-" + utilrand.String(nameLength)},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    encode("CERTIFICATE REQUEST", der),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     identity.Usages(),
		},
	}
	if o.ClusterID != "" {
		out.Annotations = map[string]string{identity.ClusterIDAnnotation: o.ClusterID}
	}
	if o.Expiration > 0 {
		out.Spec.ExpirationSeconds = ptr.To(int32(max(o.Expiration, shortest) / time.Second)) //nolint:gosec // 68 years
	}
	return out, nil
}

// ask creates the request and waits for its certificate.
func (o *Options) ask(ctx context.Context, hub kubernetes.Interface, request *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	requests := hub.CertificatesV1().CertificateSigningRequests()
	if err := o.create(ctx, hub.CertificatesV1().RESTClient(), request); err != nil {
		return nil, err
	}
	var certificate []byte
	var last error
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Cap: 2 * time.Second, Steps: 100} //nolint:mnd // used here only
	err := backoff.DelayFunc().Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		current, err := requests.Get(ctx, request.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsUnauthorized(err):
			return false, err
		case withdrawn(err, request.Name):
			return false, fmt.Errorf("%w: another agent has used it at the same time, or somebody has deleted the request; flotilla token create makes another", ErrToken)
		case err != nil:
			last = err
			return false, nil // the server may be unavailable for a moment
		}
		last = nil
		certificate = current.Status.Certificate
		return len(certificate) > 0, refused(current)
	})
	if wait.Interrupted(err) {
		if last == nil {
			last = errors.New("the control plane has not signed the request: see whether its controllers run, agentcsrapproving among them")
		}
		return nil, fmt.Errorf("%w within %s: %w", ErrNotNow, o.Timeout, last)
	}
	return certificate, err
}

// withdrawn reports whether a response means that the request does not exist any
// more, and not that the server has no such resource.
func withdrawn(err error, name string) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name == name
}

// unknown returns the back-off for a token that is not accepted: the servers read
// tokens from caches, so that some may not know a new one yet.
func unknown() wait.Backoff { return wait.Backoff{Duration: 200 * time.Millisecond, Steps: 6} } //nolint:mnd // used here only

// create creates the request. Where too many clients use one token, it waits as
// long as the server suggests.
func (o *Options) create(ctx context.Context, hub rest.Interface, request *certificatesv1.CertificateSigningRequest) error {
	for waited := false; ; waited = true {
		err := ctx.Err()
		_ = wait.ExponentialBackoffWithContext(ctx, unknown(), func(ctx context.Context) (bool, error) { // see err
			err = hub.Post().Resource("certificatesigningrequests").MaxRetries(0).Body(request).Do(ctx).Error()
			return waited || !apierrors.IsUnauthorized(err), nil
		})
		switch {
		case err == nil:
			return nil
		case apierrors.IsForbidden(err):
			return fmt.Errorf("%w: %w", ErrDenied, err)
		case waited && ctx.Err() != nil: // the time was over during the last attempt
			return o.noTurn()
		case !apierrors.IsTooManyRequests(err):
			return err
		}
		seconds, _ := apierrors.SuggestsClientDelay(err)
		turn := time.NewTimer(wait.Jitter(time.Duration(max(seconds, 1))*time.Second, 1))
		select {
		case <-turn.C:
		case <-ctx.Done():
			turn.Stop()
			return o.noTurn()
		}
	}
}

func (o *Options) noTurn() error {
	return fmt.Errorf("%w within %s: too many ask by the same token; a token of its own has its own turn: flotilla token create --cluster-name %s", ErrNotNow, o.Timeout, o.Cluster)
}

// refused returns why a request will get no certificate; nil if it may get one.
func refused(request *certificatesv1.CertificateSigningRequest) error {
	for _, condition := range request.Status.Conditions {
		if condition.Status == corev1.ConditionFalse {
			continue
		}
		if condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed {
			return fmt.Errorf("%w: %s", ErrDenied, condition.Message)
		}
	}
	return nil
}

// verify checks that a certificate is the requested one.
func (o *Options) verify(content []byte, public crypto.PublicKey) error {
	certificates, err := cert.ParseCertsPEM(content)
	if err != nil {
		return errors.New("the control plane gave a certificate that cannot be read")
	}
	got := certificates[0]
	own, ok := public.(interface{ Equal(x crypto.PublicKey) bool })
	switch {
	case !ok || !own.Equal(got.PublicKey):
		return errors.New("the control plane gave a certificate for another key")
	case got.Subject.CommonName != identity.Agent(o.Cluster) || !slices.Equal(got.Subject.Organization, []string{identity.AgentsGroup}):
		return fmt.Errorf("the control plane gave a certificate for %q of %q", got.Subject.CommonName, got.Subject.Organization)
	case !slices.Contains(got.ExtKeyUsage, x509.ExtKeyUsageClientAuth):
		return errors.New("the control plane gave a certificate that is not for clients")
	}
	return nil
}

func encode(kind string, der []byte) []byte {
	return bytes.Clone(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
