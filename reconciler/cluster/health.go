package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// outcome is an answer to whether a member is ready, as its condition shows it.
type outcome struct {
	ready           bool
	reason, message string
}

// The outcomes of a probe.
var (
	well        = outcome{true, clusterv1alpha1.ClusterReadyReason, clusterv1alpha1.ClusterReadyMessage}
	unwell      = outcome{false, clusterv1alpha1.ClusterNotReadyReason, clusterv1alpha1.ClusterNotReadyMessage}
	unreachable = outcome{false, clusterv1alpha1.ClusterNotReachableReason, clusterv1alpha1.ClusterNotReachableMessage}
)

var (
	// unknown is the outcome for a member that is healthy and does not show its identity.
	unknown = outcome{false, clusterv1alpha1.ClusterNotReadyReason, "cluster is reachable but does not tell its identity, the UID of its namespace kube-system"}
	// expired and forbidden are the outcomes for a member that refuses our credentials.
	expired = outcome{false, clusterv1alpha1.ClusterCredentialsRefusedReason, "cluster refuses the credentials, which have expired or were revoked: " +
		"join it again under the same name, or put a new token into the secret that spec.secretRef names"}
	forbidden = outcome{false, clusterv1alpha1.ClusterCredentialsRefusedReason, "cluster knows the credentials, but they do not give the rights to read /readyz and its namespace kube-system: " +
		"join it again under the same name, or give them back their role"}
)

// starting is the outcome for one that was away, or unhealthy, and refuses our credentials for
// a moment: a starting API server forbids everything until it has read its RBAC rules.
var starting = outcome{false, clusterv1alpha1.ClusterNotReadyReason, "cluster answers, and forbids so far to read how it is, as one does that is starting: it is asked again"}

// away reports whether a member could not be talked to at all.
func (o outcome) away() bool { return o.reason == clusterv1alpha1.ClusterNotReachableReason }

// refuses reports whether a member refuses our credentials.
func (o outcome) refuses() bool { return o.reason == clusterv1alpha1.ClusterCredentialsRefusedReason }

// absent returns the outcome for a transport error of a probe. It
// says what to do where that is known.
func absent(err error) outcome {
	var certificate *tls.CertificateVerificationError
	var invalid x509.CertificateInvalidError
	var network *net.OpError
	because := func(text string) outcome {
		return outcome{false, clusterv1alpha1.ClusterNotReachableReason, clusterv1alpha1.ClusterNotReachableMessage + ": " + text}
	}
	switch {
	case errors.Is(err, members.ErrRedirect):
		return because("it answers with a redirect, which is not followed; set spec.apiEndpoint to the address that it leads to")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired: // also of one whose time is still to come
		return because("its certificate has expired, or is not valid yet: look at the clocks of both sides, or renew it")
	case errors.As(err, &certificate):
		return because(clusterv1alpha1.ClusterUntrustedMessage + ", or is for another name: unjoin and join it if it was built anew, else check caBundle in the secret that spec.secretRef names")
	case errors.As(err, &network) && (network.Op == "proxyconnect" || network.Op == "socks connect"):
		return because("the proxy of spec.proxyURL does not answer")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return because("it does not answer in time")
	case errors.Is(err, syscall.ECONNREFUSED):
		return because("connection refused")
	default:
		return unreachable
	}
}

// probe requests a member's /readyz, or /healthz where that is not
// served.
func probe(ctx context.Context, member rest.Interface) outcome {
	code, err := ask(ctx, member, "/readyz")
	if code == http.StatusNotFound {
		code, err = ask(ctx, member, "/healthz")
	}
	switch {
	case code == 0:
		return absent(err)
	case code == http.StatusUnauthorized:
		return expired
	case code == http.StatusForbidden:
		return forbidden
	case code != http.StatusOK:
		return unwell
	default:
		return well
	}
}

// unidentified returns the outcome for an error of a member that was
// asked for its identity.
func unidentified(err error) outcome {
	var answer apierrors.APIStatus
	switch {
	case apierrors.IsUnauthorized(err):
		return expired
	case apierrors.IsForbidden(err):
		return forbidden
	case errors.As(err, &answer), errors.Is(err, context.DeadlineExceeded):
		return unknown
	default:
		return absent(err)
	}
}

// unwritable returns the outcome for a member that is reachable, but to which its agent writes
// nothing to.
func unwritable(err error) outcome {
	return outcome{false, clusterv1alpha1.ClusterNotReadyReason, "cluster is reachable, and nothing is written there, as its agent cannot renew its Lease " +
		metav1.NamespaceSystem + "/" + clusterv1alpha1.AgentLease + ": " + excerpt.Message(err.Error(), mostFault)}
}

// mostFault is how many bytes of a fault are shown.
const mostFault = 512

// ask returns the status of an answer; zero, and why, if there was none.
func ask(ctx context.Context, member rest.Interface, path string) (code int, err error) {
	err = member.Get().AbsPath(path).MaxRetries(0).Do(ctx).StatusCode(&code).Error()
	return code, err
}

// threshold changes an outcome only when the other one has lasted for a while, so
// that a member that flaps does not take its workloads along. Of one that fails it shows
// what helps users: each change is a write that all loops receive.
type threshold struct {
	failure, success time.Duration

	shown outcome
	began time.Time // when what is shown began to be so; zero: before the start
	since time.Time // when the answer began to differ from shown; zero: it does not
	// awaited is since when a member that was ready before the start has not been seen
	// well; zero: it has, or was not ready before.
	awaited time.Time
	// refusing is since when the member refuses the credentials; zero: it does not.
	refusing time.Time
	// other is another failure than the one that is shown, and otherSince when it came; zero: there is none.
	other      outcome
	otherSince time.Time
	// relapsed says that it has failed again after it answered, since it was last ready.
	relapsed bool
}

// confirmation is how long a member that was ready before the start may fail until it
// counts as not ready: it may have died long ago, when nobody looked. It is also how long one
// that was away may refuse the credentials, and any may fail in another way than before, until it is taken at its word.
const confirmation = 5 * time.Second

// newThreshold starts from the Cluster's condition: a member that was ready
// stays so until it has failed for long enough to be sure, and any other is taken for
// what it is first seen as.
func newThreshold(failure, success time.Duration, wasReady bool, now time.Time) *threshold {
	t := &threshold{failure: failure, success: success}
	if wasReady {
		t.shown, t.awaited = well, now
	}
	return t
}

// restart takes what is shown as what the hub recorded before a start.
func (t *threshold) restart(now time.Time) {
	*t = *newThreshold(t.failure, t.success, t.shown.ready, now)
}

// turn returns the outcome that counts, given the one that was just received, and when it was asked for: one that does not answer has been
// away since then.
func (t *threshold) turn(asked, now time.Time, is outcome) outcome {
	is = t.calm(now, is)
	if t.shown != (outcome{}) && is.ready == t.shown.ready {
		t.relapsed = !is.ready && (t.relapsed || !t.since.IsZero())
		t.shown, t.since = t.confirmed(now, is), time.Time{}
		if is.ready {
			t.awaited = time.Time{}
		}
		return t.shown
	}
	t.other = outcome{}
	if t.since.IsZero() && is.ready {
		t.since = now
	} else if t.since.IsZero() {
		t.since = asked
	}
	if t.shown == (outcome{}) || t.sure(now, is) {
		return t.show(is)
	}
	if !now.Before(t.due()) {
		return t.show(is)
	}
	if is.ready && (!t.relapsed || now.Sub(t.since) >= t.success/2) {
		return t.back()
	}
	return t.shown
}

// confirmed returns what to show of a member that fails in another way than before: the new outcome once it lasts, as one that
// starts, or dies, fails in several ways. That it refuses the credentials, or no longer does, is shown at once: it shows whose fault it is.
func (t *threshold) confirmed(now time.Time, is outcome) outcome {
	if is == t.shown || is.refuses() != t.shown.refuses() {
		t.other = outcome{}
		return is
	}
	if is != t.other {
		t.other, t.otherSince = is, now
	}
	if now.Sub(t.otherSince) < min(confirmation, t.failure) {
		return t.shown
	}
	return is
}

// due is when an answer that differs from what is shown will have stood for long enough; zero while none does.
func (t *threshold) due() time.Time {
	switch {
	case t.since.IsZero():
		return time.Time{}
	case t.shown.ready:
		return t.since.Add(t.failure)
	default:
		return t.since.Add(t.success)
	}
}

// calm takes a refusal of the credentials for that of a member that is starting, until it has
// stood for a while. One that is first seen so, or is shown so already, means it.
func (t *threshold) calm(now time.Time, is outcome) outcome {
	if !is.refuses() {
		t.refusing = time.Time{}
		return is
	}
	if t.refusing.IsZero() {
		t.refusing = now
	}
	if t.shown == (outcome{}) || t.shown.refuses() || now.Sub(t.refusing) >= min(confirmation, t.failure) {
		return is
	}
	return starting
}

// back is what is shown of a member that is well again, until that has stood for long enough: nothing is moved off it meanwhile. Of
// one that comes and goes it is not shown before half of that.
func (t *threshold) back() outcome {
	return outcome{false, clusterv1alpha1.ClusterAnswersAgainReason, fmt.Sprintf("cluster answers again since %s, and counts as ready once it has done so for %s",
		t.since.UTC().Format("2006-01-02 15:04:05 UTC"), duration.HumanDuration(t.success))}
}

// show switches to an outcome, as of when it first came.
func (t *threshold) show(is outcome) outcome {
	t.shown, t.began, t.since = is, t.since, time.Time{}
	t.other, t.relapsed = outcome{}, false
	if is.ready {
		t.awaited = time.Time{}
	}
	return is
}

// sure reports whether an answer counts at once since the member has not been seen well after
// the start: it cannot flap yet.
func (t *threshold) sure(now time.Time, is outcome) bool {
	return !t.awaited.IsZero() && (is.ready || now.Sub(t.awaited) >= min(confirmation, t.failure))
}
