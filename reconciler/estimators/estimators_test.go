package estimators_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/reconciler/estimators"
)

// foreign is a server that knows nothing of our messages: it answers bytes with bytes.
type foreign struct {
	answer []byte
	hang   bool

	mu    sync.Mutex
	asked []question
}

// question is what a foreign server was asked.
type question struct {
	Method, Object string
	Bytes          []byte
}

// raw passes messages as the bytes that they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}
func (raw) Name() string { return "proto" }

var _ encoding.Codec = raw{}

// serve serves until the test ends, and returns the port on this machine.
func (f *foreign) serve(t *testing.T, options ...grpc.ServerOption) int {
	t.Helper()
	ended := make(chan struct{})
	server := grpc.NewServer(append(options, grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var bytes []byte
		if err := stream.RecvMsg(&bytes); err != nil {
			return err
		}
		method, _ := grpc.MethodFromServerStream(stream)
		q := question{Method: method, Bytes: bytes}
		if incoming, ok := metadata.FromIncomingContext(stream.Context()); ok {
			q.Object = strings.Join(incoming.Get("object"), " ")
		}
		f.mu.Lock()
		f.asked = append(f.asked, q)
		f.mu.Unlock()
		if f.hang {
			<-ended
		}
		return stream.SendMsg(&f.answer)
	}))...)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		close(ended)
		server.Stop()
	})
	return portOf(t, listener)
}

func (f *foreign) questions() []question {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

func portOf(t *testing.T, listener net.Listener) int {
	t.Helper()
	_, text, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// nobody is a port of this machine that nobody listens at.
func nobody(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return portOf(t, listener)
}

// service leads to a port of this machine.
func service(cluster string, port int) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-scheduler-estimator-" + cluster},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "127.0.0.1", Ports: []corev1.ServicePort{
			{Port: 1, TargetPort: intstr.FromInt32(1)}, {Port: 10352, TargetPort: intstr.FromInt(port)},
		}},
	}
}

func cluster(name string, mode clusterv1alpha1.ClusterSyncMode) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
}

// asking returns what asks the estimators that services lead to, of clusters in push mode.
func asking(t *testing.T, opts estimators.Options, names []string, services ...client.Object) *estimators.Estimators {
	t.Helper()
	e := estimators.New(fake.NewClientBuilder().WithObjects(services...).Build(), opts)
	for _, name := range names {
		e.Observe(cluster(name, clusterv1alpha1.Push))
		t.Cleanup(func() { e.Forget(name) })
	}
	return e
}

func field(number protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), slices.Concat(parts...))
}

func text(number protowire.Number, value string) []byte { return field(number, []byte(value)) }

func varint(number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), value)
}

// TestAForeignServer: the questions are those that Karmada's estimators read, byte for byte,
// and their answers are understood.
func TestAForeignServer(t *testing.T) {
	const service10 = "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/"
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("150m")}
	set := []workv1alpha2.Component{{Name: "a", Replicas: 2, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: cpu, PriorityClassName: "high"}}}
	component := slices.Concat(text(1, "a"), field(2, text(3, "high"), field(4, text(1, "cpu"), field(2, text(1, "150m")))), varint(3, 2))
	assumed := []estimate.Assumed{{Namespace: "jobs", Components: set}}
	for name, tc := range map[string]struct {
		ask  func(context.Context, *estimators.Estimators) (int32, error)
		want question
	}{
		"replicas": {
			func(ctx context.Context, e *estimators.Estimators) (int32, error) {
				return e.MaxReplicas(ctx, "m1", &workv1alpha2.ReplicaRequirements{Namespace: "shop", ResourceRequest: cpu}, assumed)
			},
			question{Method: service10 + "MaxAvailableReplicas", Bytes: slices.Concat(text(1, "m1"),
				field(2, text(3, "shop"), field(5, text(1, "cpu"), field(2, text(1, "150m")))), field(3, text(1, "jobs"), field(2, component)))},
		},
		"replicas that need nothing": {
			func(ctx context.Context, e *estimators.Estimators) (int32, error) {
				return e.MaxReplicas(ctx, "m1", nil, nil)
			},
			question{Method: service10 + "MaxAvailableReplicas", Bytes: text(1, "m1")},
		},
		"sets": {
			func(ctx context.Context, e *estimators.Estimators) (int32, error) {
				return e.MaxSets(ctx, "m1", "shop", set, assumed)
			},
			question{Method: service10 + "MaxAvailableComponentSets", Bytes: slices.Concat(text(1, "m1"), field(2, component), text(3, "shop"), field(4, text(1, "jobs"), field(2, component)))},
		},
		"unschedulable": {
			func(ctx context.Context, e *estimators.Estimators) (int32, error) {
				return e.Unschedulable(ctx, "m1", workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, 5*time.Minute)
			},
			question{Method: service10 + "GetUnschedulableReplicas", Object: "kind=Deployment, name=shop/web", Bytes: slices.Concat(text(1, "m1"),
				field(2, text(1, "apps/v1"), text(2, "Deployment"), text(3, "shop"), text(4, "web")), varint(3, 300_000_000_000))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &foreign{answer: varint(1, 6)}
			e := asking(t, estimators.Options{}, []string{"m1"}, service("m1", server.serve(t)))
			got, err := tc.ask(t.Context(), e)
			if err != nil || got != 6 {
				t.Fatalf("answer %d, %v, want 6", got, err)
			}
			if diff := cmp.Diff([]question{tc.want}, server.questions()); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAFleetOfAllSorts: what one estimator does costs the answers of no other.
func TestAFleetOfAllSorts(t *testing.T) {
	minusOne := uint64(math.MaxUint64)
	silentListener, err := net.Listen("tcp", "127.0.0.1:0") // connects, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silentListener.Close()
	secured := service("secured", nobody(t))
	secured.Spec.Type = corev1.ServiceTypeClusterIP
	named := service("named", nobody(t))
	named.Spec.Ports[1].TargetPort = intstr.FromString("grpc")
	services := []client.Object{
		service("well", (&foreign{answer: varint(1, 12)}).serve(t)),
		service("full", (&foreign{}).serve(t)),
		service("unbounded", (&foreign{answer: varint(1, math.MaxInt32)}).serve(t)),
		service("newer", (&foreign{answer: slices.Concat(text(9, "news"), varint(1, 3))}).serve(t)),
		service("negative", (&foreign{answer: varint(1, minusOne)}).serve(t)),
		service("absurd", (&foreign{answer: varint(1, 1<<31)}).serve(t)),
		service("garbage", (&foreign{answer: []byte("none of your business")}).serve(t)),
		service("endless", (&foreign{answer: text(9, strings.Repeat("x", 1<<20))}).serve(t)),
		service("hangs", (&foreign{hang: true}).serve(t)),
		service("mute", portOf(t, silentListener)),
		service("dead", nobody(t)),
		secured, named,
	}
	want := map[string]string{
		"well": "12", "full": "0", "unbounded": "2147483647", "newer": "3",
		"negative": "it answers -1", "absurd": "it answers -2147483648", "garbage": "failed to unmarshal", "endless": "larger than max",
		"hangs": "context deadline exceeded", "mute": "context deadline exceeded", "dead": "connection refused",
		"secured": "it must be ExternalName", "named": "no port 10352 with a number", "missing": "there is no such host", "gone": estimators.ErrNoCluster.Error(),
	}
	names := make([]string, 0, len(want))
	for name := range want {
		if name != "gone" {
			names = append(names, name)
		}
	}
	e := asking(t, estimators.Options{Timeout: 5 * time.Second, Dial: func(ctx context.Context, address string) (net.Conn, error) {
		if strings.Contains(address, "karmada") {
			return nil, errors.New("there is no such host")
		}
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}}, names, services...)
	got := map[string]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for name := range want {
		all.Go(func() {
			ctx := t.Context()
			if name == "hangs" || name == "mute" {
				limited, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				ctx = limited
			}
			answer, err := e.MaxReplicas(ctx, name, nil, nil)
			text := strconv.Itoa(int(answer))
			if err != nil {
				text = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			got[name] = text
		})
	}
	all.Wait()
	for name, part := range want {
		if !strings.Contains(got[name], part) || (len(part) < 11 && got[name] != part) {
			t.Errorf("%s: %s, want %s", name, got[name], part)
		}
	}
}

// TestWhereEstimatorsAre: without a Service it is the name in the cluster of the hub, in two forms.
func TestWhereEstimatorsAre(t *testing.T) {
	port := (&foreign{answer: varint(1, 4)}).serve(t)
	var mu sync.Mutex
	var dialled []string
	e := asking(t, estimators.Options{Namespace: "fleet", Prefix: "room", Port: 7000, Dial: func(ctx context.Context, address string) (net.Conn, error) {
		mu.Lock()
		dialled = append(dialled, address)
		mu.Unlock()
		if strings.Contains(address, "cluster.local") {
			return nil, errors.New("there is no such host")
		}
		return new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	}}, []string{"m1"})
	for range 2 { // the second time on the connection that there is
		if got, err := e.MaxReplicas(t.Context(), "m1", nil, nil); err != nil || got != 4 {
			t.Fatalf("answer %d, %v, want 4", got, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"room-m1.fleet.svc.cluster.local:7000", "room-m1.fleet.svc:7000"}, dialled); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
}

func TestClustersInPullModeAreLeftAlone(t *testing.T) {
	services := fake.NewClientBuilder().WithObjects(service("m1", (&foreign{answer: varint(1, 4)}).serve(t))).Build()
	for name, tc := range map[string]struct {
		opts estimators.Options
		mode clusterv1alpha1.ClusterSyncMode
		want error
	}{
		"pull, and they are not to be asked": {estimators.Options{NoPull: true}, clusterv1alpha1.Pull, estimators.ErrNotAsked},
		"pull":                               {estimators.Options{}, clusterv1alpha1.Pull, nil},
		"push":                               {estimators.Options{NoPull: true}, clusterv1alpha1.Push, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := estimators.New(services, tc.opts)
			e.Observe(cluster("m1", tc.mode))
			defer e.Forget("m1")
			if _, err := e.MaxReplicas(t.Context(), "m1", nil, nil); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}

// TestOneThatHangsIsLeftAlone: who decides waits for it a few times, and then not at all.
func TestOneThatHangsIsLeftAlone(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	server := &foreign{hang: true}
	e := asking(t, estimators.Options{Timeout: 100 * time.Millisecond, Clock: clock}, []string{"m1"}, service("m1", server.serve(t)))
	ask := func() error {
		_, err := e.MaxReplicas(t.Context(), "m1", nil, nil)
		return err
	}
	for range 3 {
		if err := ask(); err == nil || errors.Is(err, estimators.ErrResting) {
			t.Fatalf("error %v, want that it does not answer", err)
		}
	}
	for range 5 {
		if err := ask(); !errors.Is(err, estimators.ErrResting) {
			t.Fatalf("error %v, want %v", err, estimators.ErrResting)
		}
	}
	clock.Step(time.Second)
	if err := ask(); err == nil || errors.Is(err, estimators.ErrResting) {
		t.Errorf("after its rest: error %v, want that it does not answer", err)
	}
	if asked := len(server.questions()); asked > 4 {
		t.Errorf("it was asked %d times, want 4 at most", asked)
	}
}

// TestAnEstimatorThatMoves is found again, where the old place does not answer any more.
func TestAnEstimatorThatMoves(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	services := fake.NewClientBuilder().WithObjects(service("m1", nobody(t))).Build()
	e := estimators.New(services, estimators.Options{Clock: clock})
	e.Observe(cluster("m1", clusterv1alpha1.Push))
	defer e.Forget("m1")
	if _, err := e.MaxReplicas(t.Context(), "m1", nil, nil); err == nil {
		t.Fatal("nobody answers, without an error")
	}
	if err := services.Update(t.Context(), service("m1", (&foreign{answer: varint(1, 4)}).serve(t))); err != nil {
		t.Fatal(err)
	}
	if _, err := e.MaxReplicas(t.Context(), "m1", nil, nil); err == nil {
		t.Fatal("the Service is read for each question")
	}
	clock.Step(30 * time.Second)
	if got, err := e.MaxReplicas(t.Context(), "m1", nil, nil); err != nil || got != 4 {
		t.Errorf("answer %d, %v, want 4", got, err)
	}
}

// TestAClusterThatGoes takes its connection with it; one of its name that comes has another.
func TestAClusterThatGoes(t *testing.T) {
	e := asking(t, estimators.Options{}, []string{"m1"}, service("m1", (&foreign{answer: varint(1, 4)}).serve(t)))
	ask := func() error {
		_, err := e.MaxReplicas(t.Context(), "m1", nil, nil)
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	e.Forget("m1")
	if err := ask(); !errors.Is(err, estimators.ErrNoCluster) {
		t.Errorf("error %v, want %v", err, estimators.ErrNoCluster)
	}
	e.Observe(cluster("m1", clusterv1alpha1.Push))
	if err := ask(); err != nil {
		t.Errorf("the one that came: %v", err)
	}
}
