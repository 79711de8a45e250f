// Package sigv4 signs requests as servers of Amazon's interfaces want them (AWS Signature Version 4).
//
// In go a request, keys, the service and region that it is for, and the time; out comes the request with its signature. It sends
// nothing, and no text shows a key. CodeCommit takes a signature as a password.
package sigv4
