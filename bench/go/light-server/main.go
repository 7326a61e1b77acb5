// Many SSH servers in one process that cost almost nothing, so that clients are measured and not sshd.
// light-server HOSTKEY ADDRESSES PORT DELAY; every command prints "ok" and ends with 0. DELAY is added to each way.
// Prints "listening" once it is, ends when its stdin does. Lets everybody in: for loopback addresses only.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

func main() {
	key, err := os.ReadFile(os.Args[1])
	check(err)
	signer, err := ssh.ParsePrivateKey(key)
	check(err)
	addresses, err := os.ReadFile(os.Args[2])
	check(err)
	delay, err := time.ParseDuration(os.Args[4])
	check(err)
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil },
	}
	config.AddHostKey(signer)
	for _, address := range strings.Fields(string(addresses)) {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, os.Args[3]))
		check(err)
		go accept(listener, config, delay)
	}
	fmt.Println("listening")
	io.Copy(io.Discard, os.Stdin)
}

func accept(listener net.Listener, config *ssh.ServerConfig, delay time.Duration) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		if delay > 0 {
			connection = newDelayed(connection, delay)
		}
		go serve(connection, config)
	}
}

func serve(connection net.Conn, config *ssh.ServerConfig) {
	defer connection.Close()
	_, channels, requests, err := ssh.NewServerConn(connection, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for wanted := range channels {
		channel, requests, err := wanted.Accept()
		if err != nil {
			return
		}
		go run(channel, requests)
	}
}

func run(channel ssh.Channel, requests <-chan *ssh.Request) {
	for request := range requests {
		request.Reply(request.Type == "exec", nil)
		if request.Type == "exec" {
			channel.Write([]byte("ok\n"))
			channel.CloseWrite()
			channel.SendRequest("exit-status", false, []byte{0, 0, 0, 0})
			channel.Close()
		}
	}
}

// A connection whose bytes arrive later, both ways, without slowing down what follows them.
type delayed struct {
	net.Conn
	delay time.Duration
	in    chan parcel
	out   chan parcel
	rest  []byte
}

type parcel struct {
	due  time.Time
	data []byte
}

func newDelayed(connection net.Conn, delay time.Duration) net.Conn {
	late := &delayed{Conn: connection, delay: delay, in: make(chan parcel, 1024), out: make(chan parcel, 1024)}
	go func() {
		defer close(late.in)
		for {
			buffer := make([]byte, 32*1024)
			length, err := connection.Read(buffer)
			if err != nil {
				return
			}
			late.in <- parcel{time.Now().Add(delay), buffer[:length]}
		}
	}()
	go func() {
		for sent := range late.out {
			time.Sleep(time.Until(sent.due))
			if _, err := connection.Write(sent.data); err != nil {
				return
			}
		}
	}()
	return late
}

func (late *delayed) Read(buffer []byte) (int, error) {
	if len(late.rest) == 0 {
		arrived, more := <-late.in
		if !more {
			return 0, io.EOF
		}
		time.Sleep(time.Until(arrived.due))
		late.rest = arrived.data
	}
	length := copy(buffer, late.rest)
	late.rest = late.rest[length:]
	return length, nil
}

func (late *delayed) Write(data []byte) (int, error) {
	late.out <- parcel{time.Now().Add(late.delay), append([]byte(nil), data...)}
	return len(data), nil
}

func (late *delayed) Close() error {
	time.AfterFunc(3*late.delay, func() { late.Conn.Close() })
	return nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
