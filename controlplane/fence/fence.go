package fence

import (
	"context"
	"net/http"
	"path"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/flotilla-io/flotilla/internal/tenure"
)

// epochKey is the gRPC metadata key that carries the epoch of a request to the store.
const epochKey = "flotilla-epoch"

// txnMethod is the gRPC method of all of the API server's writes of objects.
const txnMethod = "/etcdserverpb.KV/Txn"

// errOver is the store's answer to a write of a former leader's epoch.
var errOver = status.Error(codes.FailedPrecondition, "flotilla: "+tenure.Refusal)

// Key is the store's key of the epoch, below the prefix of all keys; empty means
// /registry.
func Key(prefix string) string {
	if prefix == "" {
		prefix = "/registry"
	}
	return path.Join("/", prefix, "leases", tenure.Namespace, tenure.EpochName)
}

// Carry attaches the epoch of a request to all that the API server writes for
// it. A malformed epoch is a bad request.
func Carry(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if epoch := req.Header.Get(tenure.Header); epoch != "" {
			if _, err := parse(epoch); err != nil {
				http.Error(w, tenure.Header+" is no resource version", http.StatusBadRequest)
				return
			}
			req = req.WithContext(metadata.AppendToOutgoingContext(req.Context(), epochKey, epoch))
		}
		next.ServeHTTP(w, req)
	})
}

func parse(epoch string) (int64, error) { return strconv.ParseInt(epoch, 10, 64) }

// epochOf returns the epoch that came with a request to the store.
func epochOf(ctx context.Context) (epoch int64, carried bool, err error) {
	arrived, _ := metadata.FromIncomingContext(ctx)
	values := arrived.Get(epochKey)
	if len(values) == 0 {
		return 0, false, nil
	}
	epoch, err = parse(values[len(values)-1])
	if err != nil {
		return 0, true, status.Error(codes.InvalidArgument, "flotilla: the epoch is no number")
	}
	return epoch, true, nil
}

// Interceptor compares epochs in a store of this process.
func Interceptor(key string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		txn, ok := req.(*pb.TxnRequest)
		if !ok {
			return next(ctx, req)
		}
		epoch, carried, err := epochOf(ctx)
		if !carried || err != nil {
			if err != nil {
				return nil, err
			}
			return next(ctx, req)
		}
		answer, err := next(ctx, compare(txn, key, epoch))
		if err != nil {
			return nil, err
		}
		if txnAnswer, ok := answer.(*pb.TxnResponse); ok {
			return judge(txnAnswer, epoch)
		}
		return answer, nil
	}
}

// compare returns a transaction that also compares the epoch with the present one, and
// that reads it if it fails.
func compare(txn *pb.TxnRequest, key string, epoch int64) *pb.TxnRequest {
	return &pb.TxnRequest{
		Compare: append([]*pb.Compare{{
			Result: pb.Compare_EQUAL, Target: pb.Compare_MOD, Key: []byte(key),
			TargetUnion: &pb.Compare_ModRevision{ModRevision: epoch},
		}}, txn.Compare...),
		Success: txn.Success,
		Failure: append(append([]*pb.RequestOp{}, txn.Failure...), &pb.RequestOp{
			Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(key), KeysOnly: true}},
		}),
	}
}

// judge distinguishes a transaction that failed for its epoch from one that failed for what it
// compares itself, and takes the epoch out of the answer to that.
func judge(answer *pb.TxnResponse, epoch int64) (*pb.TxnResponse, error) {
	if answer.Succeeded {
		return answer, nil
	}
	last := len(answer.Responses) - 1
	if last < 0 {
		return nil, errOver
	}
	found := answer.Responses[last].GetResponseRange().GetKvs()
	if len(found) != 1 || found[0].ModRevision != epoch {
		return nil, errOver
	}
	answer.Responses = answer.Responses[:last]
	return answer, nil
}
