package hub

import (
	"encoding/json"
	"fmt"
)

// ReplaceStatus returns the JSON patch (types.JSONPatchType) that gives an object
// this status, whatever it had before. It is for a status that one loop alone writes, whole: then it says
// the same as a merge patch, and costs both sides far less, because neither has
// to compare the two statuses, nor the server to merge them.
func ReplaceStatus(status any) ([]byte, error) {
	value, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encode a status: %w", err)
	}
	data := make([]byte, 0, len(value)+64)
	data = append(data, `[{"op":"add","path":"/status","value":`...) // "add" also replaces
	data = append(data, value...)
	return append(data, `}]`...), nil
}
