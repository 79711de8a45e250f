package tenure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
)

const (
	// Namespace is where the Leases are.
	Namespace = "karmada-system"
	// LeaseName is the Lease that replicas compete for.
	LeaseName = "flotilla-controllers"
	// EpochName is a Lease that the new holder of LeaseName writes once, before
	// anything else: its resource version is the epoch.
	EpochName = "flotilla-controllers-epoch"
)

// noEpoch is the epoch of a lease whose epoch no server compares.
const noEpoch = "none"

// mostLeases bounds the lease duration of another holder, in multiples of one's own:
// an edited Lease must not keep everybody out for ever.
const mostLeases = 3

// epochAttempts is how often the write of the epoch is retried after a conflict.
const epochAttempts = 5

// Lock is the lease for client-go's elector, which reports to a tenure what becomes of it.
// One tenure has one lock.
type Lock struct {
	resourcelock.Interface
	tenure *Tenure
	leases coordinationv1client.LeaseInterface // of the epoch; nil: there is none
	holder string                              // when the lease was last seen

	longest time.Duration // the longest wait for a holder without a renewal, whatever duration it claims
}

// NewLock returns the lease of the hub of config, for one tenure. Config's
// own transport is used, without the epoch: its requests are not those of loops.
func NewLock(config *rest.Config, t *Tenure) (*Lock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name this replica: %w", err)
	}
	config = rest.AddUserAgent(config, "leader-election")
	config.Timeout = RenewDeadline / 2 // one request that hangs loses nothing
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the lease: %w", err)
	}
	return &Lock{tenure: t, leases: client.Leases(Namespace), longest: mostLeases * LeaseDuration, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: Namespace, Name: LeaseName},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}}, nil
}

// Get implements resourcelock.Interface. A lease that has another holder, or is gone,
// ends the tenure.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.holder = record.HolderIdentity
		record.LeaseDurationSeconds = min(record.LeaseDurationSeconds, int(l.longest/time.Second))
	}
	if l.tenure.begun() {
		switch {
		case apierrors.IsNotFound(err):
			l.tenure.end(errors.New("the lease was deleted"))
		case err == nil && record.HolderIdentity != l.Identity():
			l.tenure.end(fmt.Errorf("%q holds it", record.HolderIdentity))
		}
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.acquire(ctx, func(ctx context.Context) error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != "" {
		return l.acquire(ctx, func(ctx context.Context) error { return l.Interface.Update(ctx, record) })
	}
	if l.holder != l.Identity() { // client-go uses what it saw before the process was paused
		return fmt.Errorf("%w: %q holds it", ErrOver, l.holder)
	}
	if err := l.tenure.giveUp(); err != nil {
		return err
	}
	return l.Interface.Update(ctx, record)
}

// acquire takes or renews the lease. A new holder may act once the
// epoch is its own, too. The sequence is finished even if ctx ends meanwhile: a lease
// that its elector does not know of would not be released.
func (l *Lock) acquire(ctx context.Context, write func(context.Context) error) error {
	if err := errors.Join(ctx.Err(), l.tenure.ends()); err != nil { // a tenure does not begin twice, and a lapsed one must not take the lease
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.tenure.deadline)
	defer cancel()
	since := l.tenure.clock.Now()
	if err := write(ctx); err != nil {
		return err
	}
	l.holder = l.Identity()
	if l.tenure.begun() {
		return l.tenure.renewed(since)
	}
	epoch := noEpoch
	if l.leases != nil {
		var err error
		if epoch, err = l.newEpoch(ctx); err != nil {
			return err
		}
	}
	return l.tenure.begin(epoch, since)
}

// newEpoch writes a new epoch. It uses the version that it read before it checked that the lease
// is this replica's: one that has lost the lease meanwhile gets a conflict, and cannot end the new holder's epoch.
func (l *Lock) newEpoch(ctx context.Context) (epoch string, err error) {
	for range epochAttempts {
		old, err := l.leases.Get(ctx, EpochName, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return "", fmt.Errorf("read the epoch: %w", err)
		}
		lease, err := l.leases.Get(ctx, LeaseName, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("read the lease: %w", err)
		}
		if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != l.Identity() {
			return "", fmt.Errorf("%q holds the lease", holder)
		}
		if missing {
			old = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: EpochName}}
		}
		next, err := l.write(ctx, old, missing)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("write the epoch: %w", err)
		}
		return next.ResourceVersion, nil
	}
	return "", errors.New("write the epoch: others write it again and again")
}

func (l *Lock) write(ctx context.Context, lease *coordinationv1.Lease, missing bool) (*coordinationv1.Lease, error) {
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity:   ptr.To(l.Identity()),
		LeaseTransitions: ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1),
		AcquireTime:      &metav1.MicroTime{Time: time.Now()},
	}
	if missing {
		return l.leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	return l.leases.Update(ctx, lease, metav1.UpdateOptions{})
}
