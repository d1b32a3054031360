"""The steps, in order. One that was released is never changed; a mistake is mended by the next one."""
