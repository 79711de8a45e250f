package tenants

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// expressions is how many Kustomizations have an endless one.
	expressions = 5
	// large is how many Kustomizations have as many objects as a build may, each
	// twice: once with plain manifests, and once for kustomize.
	large = 2
	// objects is how many that are.
	objects = 10_000
	// perFile is how many objects are in a file.
	perFile = 100
	// forges is how many sources have a server that never answers.
	forges = 6
	// name is that of the tenant.
	name = "attacker"
	// often is how often everything is to be looked at.
	often = time.Second
)

// timeouts let what is plain end, and what kustomize is asked for not.
var timeouts = map[string]time.Duration{"plain": 2 * time.Minute, "built": 5 * time.Second}

// Attack is a tenant that asks for more than there is, again and again, until Stop.
type Attack struct {
	*tenant
	forge  net.Listener
	asked  []client.Object // what is touched
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

// NewAttack prepares an attack: what it commits is fetched, and nothing applies it
// yet.
func NewAttack(ctx context.Context, fleet Fleet) (*Attack, error) {
	t, err := newTenant(ctx, fleet, name, manifests())
	if err != nil {
		return nil, err
	}
	a := &Attack{tenant: t}
	if a.forge, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("listen for a forge that never answers: %w", err)
	}
	if err := t.source(ctx, name, t.url, once); err != nil {
		return nil, err
	}
	err = wait.PollUntilContextTimeout(ctx, often/10, timeout, true, func(ctx context.Context) (bool, error) {
		var source sourcev1.GitRepository
		err := a.hub.Get(ctx, client.ObjectKey{Namespace: name, Name: name}, &source)
		return source.Status.Artifact != nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("wait until what attacks is fetched: %w", err)
	}
	return a, nil
}

// manifests are a small folder, and large ones for kustomize and without.
func manifests() map[string]string {
	files := map[string]string{"small/config.yaml": configMaps("small", 0, 1)}
	for n := range large {
		plain, built := fmt.Sprintf("plain-%d", n), fmt.Sprintf("built-%d", n)
		kustomization := "namePrefix: x-\nresources:\n"
		for i := 0; i < objects; i += perFile {
			file := fmt.Sprintf("%d.yaml", i)
			files[plain+"/"+file] = configMaps(plain, i, perFile)
			files[built+"/"+file] = configMaps(built, i, perFile)
			kustomization += "- " + file + "\n"
		}
		files[built+"/kustomization.yaml"] = kustomization
	}
	return files
}

func configMaps(of string, from, n int) string {
	var out strings.Builder
	for i := from; i < from+n; i++ {
		fmt.Fprintf(&out, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d, namespace: %s}\ndata: {number: \"%d\"}\n", of, i, name, i)
	}
	return out.String()
}

// endless is an expression that would take years.
func endless() string {
	const deep = 12
	return strings.Repeat("[1,2,3,4,5,6,7,8,9,10].all(x, ", deep) + "true" + strings.Repeat(")", deep)
}

// Start begins the attack.
func (a *Attack) Start(ctx context.Context) error {
	ctx, a.cancel = context.WithCancel(ctx)
	a.group.Go(func() { a.blackhole(ctx) })
	for n := range forges {
		dead := fmt.Sprintf("dead-%d", n)
		if err := a.source(ctx, dead, fmt.Sprintf("http://%s/%s.git", a.forge.Addr(), dead), often); err != nil {
			return err
		}
		a.asked = append(a.asked, &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: dead}})
	}
	for n := range expressions {
		err := a.attack(ctx, fmt.Sprintf("endless-%d", n), "./small", func(spec *kustomizev1.KustomizationSpec) {
			spec.Wait, spec.NamePrefix = true, fmt.Sprintf("x%d-", n)
			spec.HealthCheckExprs = []kustomize.CustomHealthCheck{{
				APIVersion: "v1", Kind: "ConfigMap", HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: endless()},
			}}
		})
		if err != nil {
			return err
		}
	}
	for n := range large {
		for _, folder := range []string{"plain", "built"} {
			name := fmt.Sprintf("%s-%d", folder, n)
			err := a.attack(ctx, name, "./"+name, func(spec *kustomizev1.KustomizationSpec) {
				spec.Timeout = &metav1.Duration{Duration: timeouts[folder]}
			})
			if err != nil {
				return err
			}
		}
	}
	a.group.Go(func() { a.urge(ctx) })
	return nil
}

func (a *Attack) attack(ctx context.Context, name, path string, change func(*kustomizev1.KustomizationSpec)) error {
	a.asked = append(a.asked, &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: a.name, Name: name}})
	return a.kustomization(ctx, name, path, often, change)
}

// urge touches everything, again and again.
func (a *Attack) urge(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, obj := range a.asked {
			if err := a.touch(ctx, obj); err != nil && ctx.Err() == nil {
				a.fail(err)
			}
		}
	}, often)
}

// blackhole accepts connections, and never answers.
func (a *Attack) blackhole(ctx context.Context) {
	var conns []net.Conn
	defer func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}()
	for {
		conn, err := a.forge.Accept()
		if err != nil {
			if ctx.Err() == nil {
				a.fail(fmt.Errorf("accept for a forge that never answers: %w", err))
			}
			return
		}
		conns = append(conns, conn)
	}
}

func (a *Attack) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.errs = append(a.errs, err)
}

// Outcome is what an attacking object has come to.
type Outcome struct {
	Name string `json:"name"`
	// Reason is that of its condition Ready, and Message the beginning of what it says.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Objects is how many it owns.
	Objects int `json:"objects"`
}

// Outcomes returns what the Kustomizations of the attack have come to: whether it
// was one.
func (a *Attack) Outcomes(ctx context.Context) ([]Outcome, error) {
	var list kustomizev1.KustomizationList
	if err := a.hub.List(ctx, &list, client.InNamespace(a.name)); err != nil {
		return nil, fmt.Errorf("list what attacks: %w", err)
	}
	var out []Outcome
	for _, ks := range list.Items {
		o := Outcome{Name: ks.Name}
		if ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition); ready != nil {
			o.Reason, o.Message = ready.Reason, ready.Message[:min(len(ready.Message), 200)]
		}
		if ks.Status.Inventory != nil {
			o.Objects = len(ks.Status.Inventory.Entries)
		}
		out = append(out, o)
	}
	return out, nil
}

// Stop ends the attack, and returns what went wrong with it. What it has applied
// stays.
func (a *Attack) Stop() error {
	a.cancel()
	_ = a.forge.Close()
	a.group.Wait()
	return errors.Join(a.errs...)
}
