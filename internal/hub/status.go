package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// ReplaceStatus returns the JSON patch (types.JSONPatchType) that replaces the
// status of the object with this UID. For an object that was recreated under the
// name, the server refuses it; see Gone. It is for a status that one loop alone
// writes, as a whole: then it does what a merge patch does, and costs both sides
// far less, as nobody has to compare the two statuses and the server has nothing
// to merge.
func ReplaceStatus(uid types.UID, status any) ([]byte, error) {
	id, err := json.Marshal(uid)
	if err != nil {
		return nil, fmt.Errorf("encode a status: %w", err)
	}
	value, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encode a status: %w", err)
	}
	data := make([]byte, 0, len(id)+len(value)+128)
	data = append(data, `[{"op":"test","path":"/metadata/uid","value":`...)
	data = append(data, id...)
	data = append(data, `},{"op":"add","path":"/status","value":`...) // "add" also replaces
	data = append(data, value...)
	return append(data, `}]`...), nil
}

// Gone reports whether err is the server's response to a JSON patch whose object
// does not exist, or of which a test failed, as it is another object or in
// another state. Nothing was written then.
func Gone(err error) bool {
	if apierrors.IsNotFound(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusUnprocessableEntity {
		return false
	}
	// A validation error lists its causes; a failed test has none.
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}
